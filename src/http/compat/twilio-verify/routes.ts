import { Elysia } from 'elysia'
import type { AppAuth } from '../../../domain/apps/authentication.ts'
import type { ApplicationService } from '../../../domain/apps/applications.ts'
import type { AnalyticsService } from '../../../domain/log/analytics.ts'
import type { CallingApplication } from '../../../domain/model/application.ts'
import type { Clock } from '../../../domain/model/clock.ts'
import { notFound, ServiceError } from '../../../domain/model/errors.ts'
import type { ListRule } from '../../../domain/model/list-rule.ts'
import { tryParsePhone } from '../../../domain/model/phone.ts'
import type { OtpService } from '../../../domain/otp/otp.ts'
import type { CallTurns } from '../../call-turns.ts'
import type { ReadIdempotency } from '../../idempotency.ts'
import { routeNotFound } from '../../route-errors.ts'
import { authenticateCaller, addTrace } from '../../require-application.ts'
import { readBasic } from '../../basic.ts'
import { invalidParameter, pageFields, readPage, readQuery } from './fields.ts'
import { presentSafeNumber, presentService, presentServices } from './present.ts'
import { findResource, isServiceOf, readAccountSid, type Resource } from './resources.ts'
import { createAttemptCalls } from './attempts.ts'
import { createVerificationCalls, type Call } from './verifications.ts'

export type TwilioVerifyServices = {
  appAuth: AppAuth
  applications: Pick<ApplicationService, 'get'>
  analytics: Pick<AnalyticsService, 'countMessages'>
  callTurns: Pick<CallTurns, 'begin'>
  clock: Clock
  /** The numbers that it trusts, and those that rules allow, are the safe list. */
  guard: { isTrustedPhone(phone: string): boolean }
  listRules: {
    findForPhone(
      application: Pick<CallingApplication, 'id' | 'developerId'>,
      phone: string,
    ): Promise<ListRule | undefined>
  }
  otp: OtpService
  readIdempotency: ReadIdempotency
  /** URL under which callers reach this server. */
  publicUrl: () => string
}

type Handler<R extends Resource> = (call: Call, resource: R) => Promise<object>
type Methods<R extends Resource> = Partial<Record<'GET' | 'POST' | 'DELETE', Handler<R>>>
type Handlers = { [K in Resource['kind']]: Methods<Extract<Resource, { kind: K }>> }

/**
 * Answers as Twilio Verify v2: its services are applications, its verifications OTP requests. A caller authenticates
 * before anything else is looked at, an unknown path included.
 */
export function twilioVerifyRoutes(services: TwilioVerifyServices) {
  const { applications, publicUrl } = services
  const getApplication = ({ application: { developerId, id } }: Call) =>
    applications.get({ id: developerId }, id)
  const refuseChange = () => {
    throw new ServiceError('FORBIDDEN', 'Services are applications.', { reason: 'SERVICES_ARE_APPLICATIONS' })
  }
  const refuseSafeNumber = () => {
    throw new ServiceError('FORBIDDEN', 'The safe list is read only.', { reason: 'SAFE_LIST_IS_READ_ONLY' })
  }
  /** Finds a number that a rule allows, or that the guard trusts. @throws INVALID_ARGUMENT; NOT_FOUND */
  const findSafe = async ({ application }: Call, item: string) => {
    const phone = tryParsePhone(item)?.phone
    if (phone === undefined) throw invalidParameter('PhoneNumber')
    const rule = await services.listRules.findForPhone(application, phone)
    const isSafe = rule ? rule.effect === 'allow' : services.guard.isTrustedPhone(phone)
    if (!isSafe) throw notFound('otpRequest')
    return presentSafeNumber(rule?.id ?? application.id, phone, publicUrl())
  }

  const handlers: Handlers = {
    services: {
      async GET(call) {
        const page = readPage(readQuery(call.request, pageFields))
        return presentServices(await getApplication(call), page, publicUrl())
      },
      POST: refuseChange,
    },
    service: {
      GET: async (call) => presentService(await getApplication(call), publicUrl()),
      POST: refuseChange,
      DELETE: refuseChange,
    },
    ...createVerificationCalls(services),
    ...createAttemptCalls(services),
    safeNumbers: { POST: refuseSafeNumber },
    safeNumber: {
      GET: (call, { item }) => findSafe(call, item),
      DELETE: refuseSafeNumber,
    },
  }

  async function answer(call: Call & { resource: Resource | undefined }): Promise<object> {
    const { request, application, resource } = call
    if (!resource) throw routeNotFound()
    if ('service' in resource && !isServiceOf(application.id, resource.service)) throw notFound('otpRequest')
    const methods: Record<string, Handler<never> | undefined> = handlers[resource.kind]
    const handler = methods[request.method === 'HEAD' ? 'GET' : request.method]
    if (!handler) throw methodNotAllowed(Object.keys(methods))
    call.set.headers['content-type'] = 'application/json'
    return handler(call, resource as never)
  }

  const authenticate = async ({ headers, request }: Pick<Call, 'headers' | 'request'>) => {
    const { appAuth, callTurns } = services
    const resource = findResource(new URL(request.url).pathname)
    // A sid of the application, and its joined secrets.
    const { name, password } = readBasic(headers['authorization'])
    const credentials = { applicationId: readAccountSid(name), joinedSecrets: password }
    if (request.method === 'POST' && operations.has(resource?.kind))
      return { application: await authenticateCaller(appAuth, credentials, request), resource }
    const application = await appAuth.authenticate(credentials)
    // A page of attempts may look at a thousand requests. The credentials may have been replaced while it waited.
    const hasWaited = await callTurns.begin(request, application.developerId)
    const current = hasWaited ? await appAuth.authenticate(credentials) : application
    return { application: addTrace(current, request), resource }
  }
  const options = { parse: 'none' as const, detail: { hide: true } }
  const routes = new Elysia({ name: 'twilio-verify' }).derive(authenticate)
  // The patterns are for the log; `findResource` decides.
  for (const path of paths) routes.all(path, (call) => answer(call), options)
  return routes
}

/** Resources whose POST ends in an operation, which checks the caller again. */
const operations: ReadonlySet<Resource['kind'] | undefined> = new Set(['verifications', 'checks'])

const paths = [
  '/v2/Services',
  '/v2/Services/:service',
  '/v2/Services/:service/Verifications',
  '/v2/Services/:service/Verifications/:item',
  '/v2/Services/:service/VerificationCheck',
  '/v2/Attempts',
  '/v2/Attempts/Summary',
  '/v2/Attempts/:item',
  '/v2/SafeList/Numbers',
  '/v2/SafeList/Numbers/:item',
  '/v2/*',
  '/v3/*',
]

function methodNotAllowed(methods: string[]): ServiceError {
  const allowed = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].toSorted().join(', ')
  return new ServiceError('METHOD_NOT_ALLOWED', `Use ${allowed}.`, { metadata: { allowed } })
}
