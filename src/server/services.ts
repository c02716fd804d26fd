import { createAppAuthenticator } from '../auth/app-authenticator.ts'
import { createBuiltInIdentity, createExternalIdentity } from '../auth/identity.ts'
import type { Config } from '../config/config.ts'
import type { Report } from '../delivery/dispatcher.ts'
import { createAnalyticsService } from '../domain/log/analytics.ts'
import { createCostService } from '../domain/routing/costs.ts'
import { createApplicationService } from '../domain/apps/applications.ts'
import { createApiTokenService } from '../domain/apps/api-tokens.ts'
import { createAuditService } from '../domain/accounts/audit.ts'
import { createLogService } from '../domain/log/events.ts'
import { createTokenCheck } from '../delivery/check-token.ts'
import { createChallenges } from '../domain/guard/challenge.ts'
import { createGuard, type AlertedSender } from '../domain/guard/guard.ts'
import { createListRuleService } from '../domain/guard/list-rules.ts'
import { createGuardStatusService } from '../domain/guard/status.ts'
import { createCallLimits } from '../domain/limits/call-limits.ts'
import { createIdentityService } from '../domain/otp/identities.ts'
import { createIds } from '../domain/model/ids.ts'
import { createInboxService } from '../domain/otp/inbox.ts'
import type { Keys } from '../domain/model/keys.ts'
import { createLogStreams } from '../domain/log/stream.ts'
import { createRefusedSends } from '../domain/otp/refused-sends.ts'
import { createOtpRelay } from '../domain/otp/relay.ts'
import { createOtpService } from '../domain/otp/otp.ts'
import { createRouteStatusService } from '../domain/routing/route-status.ts'
import { createProviderStatusService } from '../domain/otp/provider-status.ts'
import { revertGuardCounts } from '../domain/otp/guard-counts.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { ChallengeKind, TokenCheck } from '../domain/model/challenge.ts'
import type { GuardAlert } from '../domain/model/guard.ts'
import type { Random } from '../domain/model/random.ts'
import { createPhoneService } from '../domain/upkeep/phone-service.ts'
import { measureTemplateText } from '../delivery/text/template-lint.ts'
import { createPageService } from '../domain/apps/pages.ts'
import { createTemplateService } from '../domain/apps/templates.ts'
import { createProjectService } from '../domain/apps/projects.ts'
import { createSetupTokens } from '../domain/accounts/setup-tokens.ts'
import type { Store } from '../domain/store/store.ts'
import type { SendWebhook } from '../domain/model/webhook-delivery.ts'
import { createWebhookDeliveryService } from '../domain/webhooks/deliveries.ts'
import { createWebhookEndpointService } from '../domain/webhooks/endpoints.ts'
import { createWebhookTester } from '../domain/webhooks/test-event.ts'
import { createCallTurns } from '../http/call-turns.ts'
import { createClientAddressReader, createClientReader } from '../http/client.ts'
import { createIdempotencyReader } from '../http/idempotency.ts'
import { createDeveloperAuthenticator, requireTotp } from '../http/require-developer.ts'
import { createPaginate } from '../http/pagination.ts'
import type { Node } from './leadership.ts'
import { createMessaging, type MessagingNeeds } from './messaging.ts'
import { createProofs } from './proofs.ts'
import { createConnections } from '../webhooks/connections.ts'
import { createResolver } from '../webhooks/resolve.ts'
import { createWebhookSender } from '../webhooks/sender.ts'
import { createTargetGuard } from '../webhooks/targets.ts'
import { systemWorld } from '../world/system.ts'
import type { World } from '../world/world.ts'

export type ServiceNeeds = {
  config: Pick<
    Config,
    | 'oidc'
    | 'publicUrl'
    | 'signup'
    | 'requireTotp'
    | 'tokenMaxHours'
    | 'trustedProxies'
    | 'corsOrigins'
    | 'compat'
    | 'webhooks'
    | 'budgets'
    | 'guard'
    | 'plans'
    | 'templates'
    | 'proofs'
    | 'dev'
  >
  store: Store
  keys: Keys
  clock: Clock
  /** Wall clock, for times that other systems compare with their own clocks; defaults to `clock`. */
  wall?: Clock | undefined
  /** The system's by default. */
  world?: World | undefined
  random: Random
  version: string
  node: Node
  /** URL under which callers reach this server. A function, since the port may be known only after binding. */
  publicUrl: () => string
  /** Called when the keys that check tokens could not be loaded. */
  onKeysFailed?: ((owner: 'the identity provider' | 'Firebase', cause: unknown) => void) | undefined
  /** Called at most once a minute when an ID token exceeds the setting `auth.tokenMaxHours`. */
  onTokenTooLong?(hours: number): void
  /** Logs events of message delivery, such as circuit changes. */
  report?: Report | undefined
  /** Called after each attempt to send a message through a provider. */
  onProviderTried?: ((provider: string, outcome: string, tookMs: number) => void) | undefined
  onCircuitOpened?: ((provider: string) => void) | undefined
  /** Overrides of message delivery settings, for tests. */
  messaging?: Pick<MessagingNeeds, 'kinds' | 'ca' | 'dispatchMs' | 'pollMs'> | undefined
  /** Called when the guard failed and a request was allowed without it (fail open). */
  onGuardFailed?(error: unknown): void
  /** Called when a refused send is missing in the log, because it could not be written. */
  onRefusalLost?(error: unknown): void
  /** Called when a valid login of an external provider is refused because sign-up is closed. */
  onSignUpRefused?: (() => void) | undefined
  onTotpClockSetBack?: Parameters<typeof createBuiltInIdentity>[0]['onTotpClockSetBack']
  /** Called with the result of each check of a challenge. */
  onChallengeChecked?: ((kind: ChallengeKind, check: TokenCheck) => void) | undefined
  /** Called when a country has more unverified messages than usual. */
  onGuardAlert?(alert: GuardAlert, sender: AlertedSender): void
}

export type Services = ReturnType<typeof createServices>

/** Creates every service of otpd on one store. Starts and opens nothing. */
export function createServices(needs: ServiceNeeds) {
  const { config, store, clock, wall = clock, random, version, keys, world = systemWorld } = needs
  const { plans } = config
  const newId = createIds(clock, random)
  const callBounds = { callLimits: createCallLimits({ clock, plans }), callTurns: createCallTurns(world) }
  const base = { store, clock, newId, random, keys, plans, world }

  const lifetime = {
    maxHours: config.tokenMaxHours,
    onExceeded: (hours: number) => needs.onTokenTooLong?.(hours),
  }
  const identityNeeds = {
    ...base,
    wall,
    signUp: config.signup,
    lifetime,
    onSignUpRefused: needs.onSignUpRefused,
    onTotpClockSetBack: needs.onTotpClockSetBack,
  }
  const identity = config.oidc
    ? createExternalIdentity(identityNeeds, {
        ...config.oidc,
        onKeysFailed: (cause) => needs.onKeysFailed?.('the identity provider', cause),
      })
    : createBuiltInIdentity(identityNeeds, needs.publicUrl)
  const apiTokens = createApiTokenService(base)
  const readClient = createClientReader(createClientAddressReader(config.trustedProxies))
  const targets = createTargetGuard(config.webhooks.allow)
  const webhookConnections = createConnections({ world })
  const send: SendWebhook = createWebhookSender({
    connections: webhookConnections,
    guard: targets,
    resolve: createResolver(undefined, undefined, undefined, world),
    clock: wall,
    version,
    world,
  })
  const guard = createGuard({
    settings: config.guard,
    keys,
    onFault: (error) => needs.onGuardFailed?.(error),
    onAlert: (alert, sender) => needs.onGuardAlert?.(alert, sender),
  })
  const tokenCheck = createTokenCheck({ version, ca: needs.messaging?.ca, world })
  const challenges = createChallenges({
    ...base,
    settings: guard.settings,
    checkToken: tokenCheck.checkToken,
    onChecked: needs.onChallengeChecked,
  })
  const messaging = createMessaging({
    ...base,
    wall,
    version,
    node: needs.node,
    templates: config.templates,
    publicUrl: needs.publicUrl,
    guard,
    report: needs.report,
    onProviderTried: needs.onProviderTried,
    onCircuitOpened: needs.onCircuitOpened,
    onUndeliverable: (request) => revertGuardCounts({ ...base, guard, delivery }, request),
    ...needs.messaging,
  })
  const { delivery, attempts, receiveCallback } = messaging
  let sendBudget = config.budgets.phoneSend
  const recordRefusedSend = createRefusedSends({ ...base, onError: (error) => needs.onRefusalLost?.(error) })
  const proofs = createProofs(config, { ...base, wall, onKeysFailed: needs.onKeysFailed })

  const authenticateBeforeTotp = createDeveloperAuthenticator({
    ...identity,
    apiTokens,
    readClient,
    ...callBounds,
  })
  const totp = config.requireTotp ? identity.builtIn?.totp : undefined

  const analytics = createAnalyticsService(base)

  const { endpointsMax } = config.webhooks
  return {
    world,
    clock,
    wall,
    newId,
    random,
    version,
    corsOrigins: config.corsOrigins,
    configuredUrl: config.publicUrl,
    compat: config.compat,
    publicUrl: needs.publicUrl,
    analytics,
    apiTokens,
    appAuth: createAppAuthenticator(base),
    applications: createApplicationService(base),
    audit: createAuditService(base),
    builtIn: identity.builtIn,
    ...callBounds,
    readClient,
    authenticateDeveloper: totp ? requireTotp(authenticateBeforeTotp, totp) : authenticateBeforeTotp,
    authenticateBeforeTotp,
    readIdempotency: createIdempotencyReader(keys),
    developers: identity.developers,
    ensureAccount: identity.ensureAccount,
    guard,
    listRules: createListRuleService(base),
    guardStatus: createGuardStatusService({ ...base, settings: guard.settings }),
    providerStatus: createProviderStatusService({ ...base, ...messaging }),
    costs: createCostService({ analytics, ...messaging }),
    routeStatus: createRouteStatusService({ analytics, ...messaging }),
    /** Applies new modes of the guard and the send budget from the next message on. Counts are kept. */
    configureLimits(changed: Pick<Config, 'guard' | 'budgets'>) {
      guard.configure(changed.guard)
      sendBudget = changed.budgets.phoneSend
    },
    identities: createIdentityService(base),
    inbox: createInboxService({ ...base, render: delivery.render }),
    keys,
    loginSettings: identity.loginSettings,
    logs: createLogService(base),
    logStreams: createLogStreams(base),
    otp: createOtpService({
      ...base,
      delivery,
      attempts,
      checkFailuresMax: config.budgets.phoneCheckFailures,
      sendBudget: () => sendBudget,
      guard,
      challenges,
      recordRefusedSend,
      checkProof: proofs.check,
      onEnded: messaging.onEnded,
    }),
    relay: createOtpRelay({
      ...base,
      delivery,
      sendBudget: () => sendBudget,
      guard,
      recordRefusedSend,
      applyEarlyReceipt: messaging.applyEarlyToRelayed,
    }),
    messaging,
    paginate: createPaginate(base),
    pages: createPageService(base),
    phones: createPhoneService({ ...base, yieldToRequests: world.timers.nextTurn }),
    projects: createProjectService(base),
    /** Only in development mode. */
    testProofs: proofs.test,
    receiveCallback,
    sendWebhook: send,
    closeIdleConnections() {
      webhookConnections.closeIdle()
      tokenCheck.close()
    },
    setupTokens: createSetupTokens(base),
    templates: createTemplateService({ ...base, measure: measureTemplateText }),
    webhookDeliveries: createWebhookDeliveryService({ ...base, ...callBounds, send }),
    webhookEndpoints: createWebhookEndpointService({ ...base, targets, endpointsMax }),
    webhookTester: createWebhookTester({ ...base, send }),
  }
}
