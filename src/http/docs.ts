import { createHash } from 'node:crypto'
import { Elysia, type AnyElysia } from 'elysia'
import scalarPath from '#scalar' with { type: 'file' }

/**
 * Serves the OpenAPI document and its reference page, which Scalar renders. Scripts are embedded in the binary, so the
 * page loads nothing from other hosts.
 *
 * @param api the routes to describe
 */
export function docsRoutes(api: AnyElysia, about: { version: string; publicUrl: string | null }) {
  const hiddenRoute = { detail: { hide: true } }
  const documentFile = createFile('application/json', async () => {
    // Loaded on the first request: it takes 2 MB of memory.
    const { buildDocument } = await import('./openapi/build.ts')
    return JSON.stringify(await buildDocument(api, about))
  })
  const scalarFile = createFile('text/javascript; charset=utf-8', () => Bun.file(scalarPath).text())
  const startFile = createFile('text/javascript; charset=utf-8', () => startScript)

  return new Elysia({ prefix: '/v1' })
    .get('/openapi.json', ({ request }) => documentFile(request), hiddenRoute)
    .get(
      '/docs',
      () =>
        new Response(docsPage, {
          headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': pagePolicy },
        }),
      hiddenRoute,
    )
    .get('/docs/start.js', ({ request }) => startFile(request), hiddenRoute)
    .get('/docs/scalar.js', ({ request }) => scalarFile(request), hiddenRoute)
}

/**
 * Creates the response of a file that changes only with the version of otpd: compressed if the client accepts it, and
 * 304 if the client has it (RFC 9110 §13.1.2).
 */
function createFile(type: string, read: () => string | Promise<string>) {
  let file: Promise<{ text: string; etag: string; zipped: Uint8Array<ArrayBuffer> }> | undefined
  const load = async () => {
    const text = await read()
    const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
    return { text, etag, zipped: Bun.gzipSync(text) }
  }
  return async ({ headers }: Request): Promise<Response> => {
    const { text, etag, zipped } = await (file ??= load())
    const isZipped = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|\s|$))/.test(headers.get('accept-encoding') ?? '')
    const shared = { etag, vary: 'Accept-Encoding', 'cache-control': 'no-cache' }
    const known = (headers.get('if-none-match') ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
    if (known.includes(etag) || known.includes('*'))
      return new Response(null, { status: 304, headers: shared })
    return new Response(isZipped ? zipped : text, {
      headers: { ...shared, 'content-type': type, ...(isZipped && { 'content-encoding': 'gzip' }) },
    })
  }
}

/** Scripts are ours alone. Inline styles are allowed, because Scalar adds them; they run no code. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const docsPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>otpd API</title>
<link rel="icon" href="data:,">
</head>
<body>
<div id="docs"></div>
<noscript>This page needs JavaScript. The OpenAPI document is at <a href="openapi.json">/v1/openapi.json</a>.</noscript>
<script src="docs/scalar.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`

/** Fonts, telemetry, assistants and proxies of Scalar's own hosts are off. */
const settings = {
  url: 'openapi.json',
  layout: 'modern',
  theme: 'default',
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
}

/** Calls go to the host that served the page, which needs no CORS. */
const startScript = `Scalar.createApiReference('#docs', { ...${JSON.stringify(settings)}, servers: [{ url: location.origin }] })\n`
