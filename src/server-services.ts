import { createAppAuthenticator } from './auth/app-credentials.ts'
import { builtInClientId, createBuiltInIssuer, createBuiltInVerifier } from './auth/built-in-issuer.ts'
import { createRemoteKeys } from './auth/discovery.ts'
import { createIdTokenVerifier } from './auth/id-token.ts'
import { createKeySource } from './auth/jwks.ts'
import { createPasswords } from './auth/passwords.ts'
import { createSigningKeys } from './auth/signing-keys.ts'
import type { Config } from './config.ts'
import { createDelivery } from './delivery/router.ts'
import { createAccountService } from './domain/accounts.ts'
import { createAnalyticsService } from './domain/analytics.ts'
import { createApplicationService } from './domain/applications.ts'
import { createDeveloperService } from './domain/developers.ts'
import { createLogService } from './domain/events.ts'
import type { LoginSettings } from './domain/identity-provider.ts'
import { createIdentityService } from './domain/identities.ts'
import { createIds } from './domain/ids.ts'
import { createInboxService } from './domain/inbox.ts'
import { deriveKeys } from './domain/keys.ts'
import { createLoginAttempts } from './domain/login-attempts.ts'
import { createOtpService } from './domain/otp.ts'
import type { Clock, Random } from './domain/ports.ts'
import { createProjectService } from './domain/projects.ts'
import { createRefreshTokens } from './domain/refresh-tokens.ts'
import { createSetupTokens } from './domain/setup-tokens.ts'
import type { Store } from './domain/store.ts'
import type { SendWebhook } from './domain/webhook-deliveries.ts'
import { createWebhookEndpointService } from './domain/webhook-endpoints.ts'
import { createWebhookTester } from './domain/webhook-test-event.ts'
import { createClientAddress } from './http/client-address.ts'
import { createConsoleAuth, type VerifyToken } from './http/console-auth.ts'
import { createResolver } from './webhooks/resolve.ts'
import { createWebhookSender } from './webhooks/sender.ts'
import { createTargetGuard } from './webhooks/targets.ts'

export type ServiceNeeds = {
  config: Pick<
    Config,
    'oidc' | 'signup' | 'trustedProxies' | 'corsOrigins' | 'webhooks' | 'budgets' | 'plans'
  >
  store: Store
  masterKey: Uint8Array
  clock: Clock
  random: Random
  version: string
  /** Where callers reach this server; asked each time, as the port may be known only once it listens. */
  publicUrl: () => string
  /** Told when the keys of an external identity provider could not be loaded. */
  onKeysFailed?(cause: unknown): void
}

export type Services = ReturnType<typeof createServices>

/** Every service of otpd over one store. Starts nothing and opens nothing. */
export function createServices(needs: ServiceNeeds) {
  const { config, store, clock, random, version } = needs
  const { plans } = config
  const keys = deriveKeys(needs.masterKey)
  const newId = createIds(clock, random)
  const base = { store, clock, newId, random, keys, plans }

  const developers = createDeveloperService({ ...base, signUp: config.signup })
  const login = createLogin({ ...needs, keys, newId })
  const guard = createTargetGuard(config.webhooks.allow)
  const send: SendWebhook = createWebhookSender({ guard, resolve: createResolver(), clock, version })
  const delivery = createDelivery()

  return {
    clock,
    newId,
    version,
    corsOrigins: config.corsOrigins,
    analytics: createAnalyticsService(base),
    appAuth: createAppAuthenticator(base),
    applications: createApplicationService(base),
    builtIn: login.builtIn,
    clientAddress: createClientAddress(config.trustedProxies),
    consoleAuth: createConsoleAuth({ verify: login.verify, developers }),
    developers,
    identities: createIdentityService(base),
    inbox: createInboxService({ ...base, render: delivery.render }),
    loginSettings: login.settings,
    logs: createLogService(base),
    otp: createOtpService({
      ...base,
      delivery,
      checkFailuresMax: config.budgets.phoneCheckFailures,
      sendBudget: config.budgets.phoneSend,
    }),
    projects: createProjectService(base),
    sendWebhook: send,
    setupTokens: login.setupTokens,
    webhookEndpoints: createWebhookEndpointService({
      ...base,
      targets: guard,
      endpointsMax: config.webhooks.endpointsMax,
    }),
    webhookTester: createWebhookTester({ ...base, send }),
  }
}

/** Who developers log in at: the operator's OpenID provider, or otpd itself. */
function createLogin(
  needs: ServiceNeeds & { keys: ReturnType<typeof deriveKeys>; newId: ReturnType<typeof createIds> },
) {
  const { config, store, clock, random, keys } = needs
  const setupTokens = createSetupTokens({ store, clock, random })
  if (config.oidc) {
    const { issuer, audience, jwksUri, clientId } = config.oidc
    const load = createRemoteKeys({ issuer, ...(jwksUri !== null && { jwksUri }) })
    const source = createKeySource({ load, clock, onLoadFailed: (cause) => needs.onKeysFailed?.(cause) })
    const { verify } = createIdTokenVerifier({ issuer, audiences: audience, keys: source, clock })
    const settings: LoginSettings = {
      kind: 'oidc',
      issuer,
      clientId: clientId ?? audience[0] ?? '',
      tokenEndpoint: null,
      revocationEndpoint: null,
      setupTokenAwaited: false,
    }
    return {
      verify: verify satisfies VerifyToken,
      settings: () => Promise.resolve(settings),
      builtIn: undefined,
      setupTokens,
    }
  }

  const issuerUrl = () => `${needs.publicUrl()}/v1/auth`
  const loginAttempts = createLoginAttempts({ store, clock })
  const accounts = createAccountService({
    ...needs,
    passwords: createPasswords(),
    loginAttempts,
    setupTokens,
  })
  const refreshTokens = createRefreshTokens({ store, clock, random, key: keys.refreshToken })
  const signingKeys = createSigningKeys({ store, clock, random, key: keys.signingKey })
  const provider = createBuiltInIssuer({ issuerUrl, accounts, refreshTokens, signingKeys, clock })
  const { verify } = createBuiltInVerifier({ issuerUrl, signingKeys, clock })
  const settings = async (): Promise<LoginSettings> => ({
    kind: 'built_in',
    issuer: issuerUrl(),
    clientId: builtInClientId,
    tokenEndpoint: `${issuerUrl()}/token`,
    revocationEndpoint: `${issuerUrl()}/revoke`,
    setupTokenAwaited: !(await store.read.accounts.any()),
  })
  return { verify: verify satisfies VerifyToken, settings, builtIn: { provider, accounts }, setupTokens }
}
