import { Elysia } from 'elysia'
import type { AppAuth } from '../../../domain/apps/authentication.ts'
import { invalidField, ServiceError } from '../../../domain/model/errors.ts'
import type { OtpService } from '../../../domain/otp/otp.ts'
import { authenticateCaller } from '../../require-application.ts'
import { routeNotFound } from '../../route-errors.ts'
import { createCalls, type Call } from './calls.ts'
import { apiPath, discoveryPath, tokenPath } from './errors.ts'
import { grantToken, presentDiscovery, readBearer } from './token.ts'

export type CamaraServices = {
  appAuth: AppAuth
  otp: OtpService
  /** URL under which callers reach this server. */
  publicUrl: () => string
}

/**
 * Answers as CAMARA one-time-password-sms v1, with tokens for client credentials. But for the token and its discovery, a
 * caller authenticates before anything else is looked at, an unknown path included.
 */
export function camaraRoutes({ appAuth, otp, publicUrl }: CamaraServices) {
  const { sendCode, validateCode } = createCalls(otp)
  const options = { parse: 'none' as const, detail: { hide: true } }

  const open = new Elysia({ name: 'camara-token' })
    .all(
      discoveryPath,
      ({ request, set }) => {
        setHeaders({ request, set })
        requireMethod(request, 'GET', 'HEAD')
        return presentDiscovery(publicUrl())
      },
      options,
    )
    .all(
      tokenPath,
      ({ request, set }) => {
        setHeaders({ request, set })
        requireMethod(request, 'POST')
        return grantToken(appAuth, request)
      },
      options,
    )

  const authenticate = async ({
    headers,
    request,
    set,
  }: Omit<Call, 'application'> & { headers: Headers }) => {
    const isCorrelated = setHeaders({ request, set })
    const application = await authenticateCaller(appAuth, readBearer(headers['authorization']), request)
    if (!isCorrelated) throw invalidField('header', 'x-correlator', 'Expected up to 256 letters and digits.')
    return { application }
  }
  const calls = new Elysia({ name: 'camara' }).derive(authenticate)
  const post = (path: string, call: (call: Call) => Promise<object | undefined>) =>
    calls.all(
      apiPath + path,
      (context) => {
        requireMethod(context.request, 'POST')
        return call(context)
      },
      options,
    )
  post('/send-code', sendCode)
  post('/validate-code', validateCode)
  const refuse = () => {
    throw routeNotFound()
  }
  for (const path of ['/one-time-password-sms/*', '/camara/*']) calls.all(path, refuse, options)
  const routes = new Elysia()
  routes.use(open)
  routes.use(calls)
  return routes
}

type Headers = Record<string, string | undefined>

const correlatorPattern = /^[a-zA-Z0-9\-_:;./<>{}]{0,256}$/

/**
 * Sends the correlator of a call back, or the id of the request if it has none, with the type of every answer.
 *
 * @returns whether it is valid
 */
function setHeaders({ request, set }: Pick<Call, 'request' | 'set'>): boolean {
  const correlator = request.headers.get('x-correlator') ?? String(set.headers['x-request-id'])
  const isValid = correlatorPattern.test(correlator)
  if (isValid) set.headers['x-correlator'] = correlator
  set.headers['content-type'] = 'application/json'
  return isValid
}

function requireMethod({ method }: Request, ...methods: string[]) {
  const allowed = methods.join(', ')
  if (!methods.includes(method))
    throw new ServiceError('METHOD_NOT_ALLOWED', `Use ${allowed}.`, { metadata: { allowed } })
}
