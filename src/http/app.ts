import { Elysia } from 'elysia'
import type { AppAuth } from '../domain/apps/authentication.ts'
import type { ApiTokenService } from '../domain/apps/api-tokens.ts'
import type { AnalyticsService } from '../domain/log/analytics.ts'
import type { CostService } from '../domain/routing/costs.ts'
import type { ApplicationService } from '../domain/apps/applications.ts'
import type { AuditService } from '../domain/accounts/audit.ts'
import type { DeveloperService } from '../domain/accounts/developers.ts'
import { ServiceError } from '../domain/model/errors.ts'
import type { LogService } from '../domain/log/events.ts'
import type { IdentityService } from '../domain/otp/identities.ts'
import type { CallLimits } from '../domain/limits/call-limits.ts'
import type { NewId } from '../domain/model/ids.ts'
import type { ListRuleService } from '../domain/guard/list-rules.ts'
import type { GuardStatusService } from '../domain/guard/status.ts'
import type { RouteStatusService } from '../domain/routing/route-status.ts'
import type { ProviderStatusService } from '../domain/otp/provider-status.ts'
import type { InboxService } from '../domain/otp/inbox.ts'
import type { LogStreams } from '../domain/log/stream.ts'
import type { OtpService } from '../domain/otp/otp.ts'
import type { OtpRelay } from '../domain/otp/relay.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { PageService } from '../domain/apps/pages.ts'
import type { TemplateService } from '../domain/apps/templates.ts'
import type { PhoneService } from '../domain/upkeep/phone-service.ts'
import type { ProjectService } from '../domain/apps/projects.ts'
import type { CallTurns } from './call-turns.ts'
import {
  createErrorPresenter,
  facadeRoutes,
  type FacadeServices,
  type PresentError,
} from './compat/facades.ts'
import { createRouteErrors, listShadowed } from './route-errors.ts'
import type { ReadIdempotency } from './idempotency.ts'
import { docsRoutes } from './docs.ts'
import { guideRoutes } from './guides.ts'
import type { WebhookDeliveryService } from '../domain/webhooks/deliveries.ts'
import type { WebhookEndpointService } from '../domain/webhooks/endpoints.ts'
import type { WebhookTester } from '../domain/webhooks/test-event.ts'
import { pageRoutes, type PageServices } from './page/routes.ts'
import { internalMessage, toErrorResponse, toServiceError } from './errors.ts'
import type { Paginate } from './pagination.ts'
import { bodyBytesMax, payloadTooLarge } from './json-body.ts'
import { isSafeMethod, refuseAmbiguousQuery } from './urls.ts'
import { setRateHeaders, deferredRate } from './rate-headers.ts'
import { deferredAuthenticationError } from './require-application.ts'
import { readTraceId } from './client.ts'
import { analyticsRoutes } from './routes/analytics.ts'
import { applicationPageRoutes } from './routes/application-page.ts'
import { applicationTemplateRoutes } from './routes/application-templates.ts'
import { applicationRoutes } from './routes/applications.ts'
import { auditRoutes } from './routes/audit.ts'
import { authRoutes, type AuthServices } from './routes/auth.ts'
import { callbackRoutes, type ReceiveCallback } from './routes/callbacks.ts'
import { deliveryStatusRoutes } from './routes/delivery-status.ts'
import { routeStatusRoutes } from './routes/route-status.ts'
import { developerRoutes } from './routes/developer.ts'
import { guardRuleRoutes } from './routes/guard-rules.ts'
import { healthRoutes, type Readiness } from './routes/health.ts'
import { inboxRoutes } from './routes/inbox.ts'
import { logStreamRoutes } from './routes/log-stream.ts'
import { logRoutes } from './routes/logs.ts'
import { otpRoutes } from './routes/otp.ts'
import type { IssueTestProof } from './routes/otp-proofs.ts'
import { supabaseHookRoute } from './routes/supabase-hook.ts'
import { projectRoutes } from './routes/projects.ts'
import { totpRoutes } from './routes/totp.ts'
import { tokenRoutes } from './routes/tokens.ts'
import { userRoutes } from './routes/users.ts'
import { webhookDeliveryRoutes } from './routes/webhook-deliveries.ts'
import { webhookRoutes } from './routes/webhooks.ts'
import type { World } from '../world/world.ts'

export type AppServices = AuthServices &
  FacadeServices &
  PageServices & {
    world: Pick<World, 'timers'>
    clock: Clock
    newId: NewId
    /** otpd version, shown in the OpenAPI document. */
    version: string
    /** Where clients reach the server, shown in the OpenAPI document; null if the operator did not say. */
    configuredUrl: string | null
    readiness: Readiness
    /** Origins whose scripts may call the console routes. */
    corsOrigins: readonly string[]
    analytics: AnalyticsService
    apiTokens: ApiTokenService
    appAuth: AppAuth
    applications: ApplicationService
    audit: AuditService
    callLimits: CallLimits
    callTurns: CallTurns
    costs: CostService
    developers: DeveloperService
    guardStatus: GuardStatusService
    listRules: ListRuleService
    identities: IdentityService
    inbox: InboxService
    logs: LogService
    logStreams: LogStreams
    /** Interval of the heartbeat in log streams; 10 s by default. */
    heartbeatMs?: number
    otp: OtpService
    pages: PageService
    templates: TemplateService
    phones: PhoneService
    paginate: Paginate
    projects: ProjectService
    providerStatus: ProviderStatusService
    routeStatus: RouteStatusService
    readIdempotency: ReadIdempotency
    relay: OtpRelay
    testProofs: IssueTestProof | undefined
    /** Wall clock, comparable with those of others. */
    wall: Clock
    receiveCallback: ReceiveCallback
    webhookDeliveries: WebhookDeliveryService
    webhookEndpoints: WebhookEndpointService
    webhookTester: WebhookTester
    /** Called with every error response, and the path of the request. */
    onRefusal?: ((error: ServiceError, path: string) => void) | undefined
    /** Called with every error that is not part of the contract. */
    onBug(error: unknown, traceId: string): void
  }

export type App = ReturnType<typeof createApp>

/** The routes that the OpenAPI document describes. */
const createApi = (services: AppServices) =>
  new Elysia({ normalize: false })
    .use(analyticsRoutes(services))
    .use(applicationRoutes(services))
    .use(applicationPageRoutes(services))
    .use(applicationTemplateRoutes(services))
    .use(auditRoutes(services))
    .use(authRoutes(services))
    .use(callbackRoutes(services))
    .use(deliveryStatusRoutes(services))
    .use(routeStatusRoutes(services))
    .use(developerRoutes(services))
    .use(guardRuleRoutes(services))
    .use(healthRoutes(services))
    .use(inboxRoutes(services))
    .use(logRoutes(services))
    .use(logStreamRoutes(services))
    .use(otpRoutes(services))
    .use(projectRoutes(services))
    .use(supabaseHookRoute(services))
    .use(totpRoutes(services))
    .use(tokenRoutes(services))
    .use(userRoutes(services))
    .use(webhookRoutes(services))
    .use(webhookDeliveryRoutes(services))

/** Creates the whole HTTP API. It opens no port: `handle` takes a request and returns the response. */
export function createApp(services: AppServices) {
  const api = createApi(services)
  const { presentError, isFacadePath } = createErrorPresenter(services.compat)
  const app = new Elysia({ normalize: false })
    .wrap((handle) => async (request: Request) => {
      try {
        return await handle(request)
      } finally {
        // Not in `onAfterResponse` of the developers' routes: it comes before the promise of a handler resolves.
        services.callTurns.end(request)
      }
    })
    .onRequest(({ request, set }) => {
      Object.assign(set.headers, securityHeaders)
      set.headers['x-request-id'] = services.newId('req')
      if (services.corsOrigins.length > 0)
        Object.assign(set.headers, corsHeaders(services.corsOrigins, request))
      const isTooLarge = Number(request.headers.get('content-length') ?? 0) > bodyBytesMax
      // A façade authenticates its caller first.
      if (isTooLarge && !isFacadePath(new URL(request.url).pathname)) throw payloadTooLarge()
      const isOfAllowedPage = 'access-control-allow-origin' in set.headers
      return isOfAllowedPage && isPreflight(request) ? new Response(null, { status: 204 }) : undefined
    })
    .onBeforeHandle(async ({ request }) => {
      refuseAmbiguousQuery(request.url)
      if (isSafeMethod(request.method)) return undefined
      // Bun closes a connection on which a pipelined request arrives while the response to the one before is pending: that
      // one would be executed and never be answered. Bun parses everything that has arrived before the next turn.
      await services.world.timers.nextTurn()
      // The status that nginx logs for it.
      return request.signal.aborted ? new Response(null, { status: 499 }) : undefined
    })
    .onError(async ({ code, error, set, request, path, route }) => {
      const traceId = readTraceId(request, set.headers)
      // The framework also reads `code` from our errors, so NOT_FOUND alone does not mean that the route is missing.
      const ownError =
        toServiceError(error, request, route) ??
        (code === 'NOT_FOUND' ? routeError(request.method, path) : undefined)
      const isOutage = ownError?.code === 'UNAVAILABLE'
      const serviceError = (!isOutage && (await deferredAuthenticationError(request))) || ownError
      if (!serviceError || serviceError.code === 'INTERNAL') services.onBug(error, traceId)
      const refusal = serviceError ?? new ServiceError('INTERNAL', internalMessage)
      services.onRefusal?.(refusal, path)
      const response = presentError(refusal, traceId, path)
      set.status = response.status
      // A header that a façade sends with every response is set already.
      Object.assign(set.headers, { ...response.headers, ...set.headers })
      // On PostgreSQL replaced credentials are refused after the rate was deferred: only a current caller may know it.
      const isUnknownCaller = refusal.code === 'UNAUTHENTICATED'
      setRateHeaders(set.headers, refusal.rate ?? (isUnknownCaller ? undefined : await deferredRate(request)))
      if (serviceError?.code === 'METHOD_NOT_ALLOWED')
        set.headers['allow'] = String(serviceError.metadata?.['allowed'])
      return response.body
    })
    .use(api)
    .use(facadeRoutes(services))
    .use(pageRoutes(services))
    .use(
      docsRoutes(
        api,
        { version: services.version, publicUrl: services.configuredUrl },
        services.world.timers,
      ),
    )
    .use(guideRoutes())

  const { routes } = app
  const routeError = createRouteErrors(routes)
  for (const { method, path } of listShadowed(routes)) {
    const refuse = () => {
      throw routeError(method, path)
    }
    app.route(method, path, refuse, { detail: { hide: true } })
  }
  return app
}

/** Sent with every response. The documentation page overrides the content security policy. */
export const securityHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

/** Creates the error responses of a listener, for requests that do not reach the application. */
export const createErrorResponder =
  ({ newId, presentError = toErrorResponse }: { newId: NewId; presentError?: PresentError | undefined }) =>
  (error: ServiceError, path = '', traceId = newId('req')) => {
    const { status, headers, body } = presentError(error, traceId, path)
    return Response.json(body, {
      status,
      headers: { ...securityHeaders, 'x-request-id': traceId, ...headers },
    })
  }

/**
 * Routes that take an application's secrets, a provider's callbacks or hooks, and those of façades. Only servers call them, so
 * no page may.
 */
const serverOnlyPaths =
  /^\/(v1\/(otp\/((send|resend|verify|cancel)\/?$|(deliver|proofs|sessions)(\/|$))|callbacks\/|hooks\/)|v[23]\/|one-time-password-sms\/|camara\/)/

/** Whether a request is a CORS preflight (Fetch standard). */
const isPreflight = (request: Request) =>
  request.method === 'OPTIONS' && request.headers.has('access-control-request-method')

/**
 * Returns the headers that let pages of a configured origin call the console routes; none for other origins. Cookies
 * are not allowed, because pages send the token in a header.
 */
function corsHeaders(origins: readonly string[], request: Request): Record<string, string> {
  const origin = request.headers.get('origin')
  if (origin === null) return {}
  const headers: Record<string, string> = { vary: 'Origin' }
  if (!origins.includes(origin) || serverOnlyPaths.test(new URL(request.url).pathname)) return headers
  headers['access-control-allow-origin'] = origin
  if (isPreflight(request)) {
    headers['access-control-allow-methods'] = 'GET, POST, PUT, PATCH, DELETE'
    headers['access-control-allow-headers'] = 'Authorization, Content-Type, Idempotency-Key, Last-Event-ID'
    headers['access-control-max-age'] = '600'
  } else {
    headers['access-control-expose-headers'] =
      'X-Request-Id, RateLimit, RateLimit-Policy, Retry-After, Idempotency-Replayed'
  }
  return headers
}
