import { Elysia } from 'elysia'
import { ServiceError } from '../domain/model/errors.ts'
import type { AppAuth, Credentials } from '../domain/apps/authentication.ts'
import type { CallingApplication } from '../domain/model/application.ts'
import type { Developer } from '../domain/model/developer.ts'
import type { CallLimits } from '../domain/limits/call-limits.ts'
import { setRateHeaders } from './rate-headers.ts'
import { readTrace } from './client.ts'
import type { AuthenticateDeveloper } from './require-developer.ts'

type Headers = Record<string, string | undefined>

const readAppCredentials = (headers: Headers) => ({
  clientId: headers['x-client-id'],
  clientSecret: headers['x-client-secret'],
  apiKey: headers['x-api-key'],
})

const deferredChecks = new WeakMap<Request, () => Promise<unknown>>()

/**
 * Authenticates the caller of a route that ends in an operation: see `AppAuth.authenticateForOperation`. An error before it is
 * returned only to a caller whose credentials are current.
 */
export async function authenticateCaller(
  auth: AppAuth,
  credentials: Credentials,
  request: Request,
): Promise<CallingApplication> {
  const application = await auth.authenticateForOperation(credentials)
  // On PostgreSQL the operation checks the credentials.
  if (application.configurationVersion === undefined)
    deferredChecks.set(request, () => auth.authenticate(credentials))
  return addTrace(application, request)
}

/** Adds the trace context of the call, which goes to providers and webhooks. */
export function addTrace(application: CallingApplication, request: Request): CallingApplication {
  const trace = readTrace(request)
  return trace ? { ...application, traceparent: trace.traceparent } : application
}

/**
 * Plugin for routes that end in an operation. It authenticates an application by its three headers and adds `application`
 * to the context. It is a `derive`, which runs before validation, so that an unauthenticated request gets 401 even if it is
 * invalid, too.
 */
export const requireApplication = (auth: AppAuth) =>
  new Elysia({ name: 'require-application' }).derive({ as: 'scoped' }, async ({ headers, request }) => ({
    application: await authenticateCaller(auth, readAppCredentials(headers), request),
  }))

/**
 * Authenticates the caller of a request that failed before its operation, which would have done it.
 *
 * @returns UNAUTHENTICATED, FORBIDDEN or UNAVAILABLE
 */
export async function deferredAuthenticationError(request: Request): Promise<ServiceError | undefined> {
  try {
    await deferredChecks.get(request)?.()
    return undefined
  } catch (error) {
    return error instanceof ServiceError ? error : undefined
  }
}

/** Caller of a route that is open to developers and to applications. */
type Caller =
  { kind: 'developer'; developer: Developer } | { kind: 'application'; application: CallingApplication }

/** The owner of the requests and sessions that a caller may read. */
export const ownerOf = (caller: Caller) =>
  caller.kind === 'developer' ? { developerId: caller.developer.id } : { appId: caller.application.id }

/**
 * Plugin that authenticates a developer or an application and adds `caller` to the context. An `Authorization` header
 * takes precedence over the headers of an application. A call with an API key alone is charged.
 *
 * @param accepts whether an application must send all three headers or only its API key
 */
export const requireEither = (
  services: {
    authenticateDeveloper: AuthenticateDeveloper
    appAuth: AppAuth
    callLimits: Pick<CallLimits, 'chargeLookup'>
  },
  accepts: 'full_credentials' | 'api_key_only',
) =>
  new Elysia({ name: `require-either (${accepts})` }).derive(
    { as: 'scoped' },
    async ({ headers, request, server, set, route }): Promise<{ caller: Caller }> => {
      const credentials = readAppCredentials(headers)
      const isFromApplication = Object.values(credentials).some((value) => value !== undefined)
      if (headers['authorization'] !== undefined || !isFromApplication) {
        const developer = await services.authenticateDeveloper(headers['authorization'], {
          request,
          server,
          set,
          route,
        })
        return { caller: { kind: 'developer', developer } }
      }
      if (accepts === 'full_credentials')
        return {
          caller: { kind: 'application', application: await services.appAuth.authenticate(credentials) },
        }
      const application = await services.appAuth.authenticateKey(credentials.apiKey)
      setRateHeaders(set.headers, services.callLimits.chargeLookup(application))
      return { caller: { kind: 'application', application } }
    },
  )
