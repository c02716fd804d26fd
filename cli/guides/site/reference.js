import { createApiReference } from './standalone.esm.js'

const { theme } = document.documentElement.dataset
const isDark = matchMedia('(prefers-color-scheme: dark)').matches

/** Fonts, telemetry, assistants and proxies of Scalar's own hosts are off. */
createApiReference('#docs', {
  url: 'openapi.json',
  // Calls go to the host that served the page, which needs no CORS.
  servers: [{ url: location.origin }],
  layout: 'modern',
  theme: 'default',
  forceDarkModeState: theme ?? (isDark ? 'dark' : 'light'),
  hideDarkModeToggle: true,
  withDefaultFonts: false,
  persistAuth: true,
  authentication: { preferredSecurityScheme: ['console', ['clientId', 'clientSecret', 'apiKey']] },
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  hiddenClients: [],
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  operationTitleSource: 'summary',
  defaultOpenAllTags: false,
  metaData: { title: 'otpd API' },
})
