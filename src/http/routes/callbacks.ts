import { Elysia } from 'elysia'
import { Type } from '@sinclair/typebox'
import { notFound, ServiceError } from '../../domain/model/errors.ts'
import { readText } from '../json-body.ts'
import { data, object } from '../schemas.ts'

/** Raw callback request of a provider. */
type CallbackRequest = {
  provider: string
  token: string
  method: string
  /** Query string with its question mark, or empty. */
  search: string
  headers: Readonly<Record<string, string | undefined>>
  body: string
}

/**
 * `unknown`: no such provider, or the token belongs to another one. `forged`: invalid signature. `unverifiable`: the provider
 * must repeat it. `challenge`: the provider verifies that the URL is ours and expects this text as the response.
 */
type CallbackOutcome =
  | { kind: 'received' | 'unknown' | 'forged' | 'unreadable' | 'unverifiable' }
  | { kind: 'challenge'; text: string }

export type ReceiveCallback = (request: CallbackRequest) => Promise<CallbackOutcome>

type CallbackContext = {
  request: Request
  params: { provider: string; token: string }
  set: { headers: Record<string, string | number> }
}

/**
 * Routes where providers post delivery receipts, each in its own format. They are not part of the API for developers
 * and not in its document.
 */
export function callbackRoutes({ receiveCallback }: { receiveCallback: ReceiveCallback }) {
  const receive = async ({ request, params, set }: CallbackContext) => {
    const queryStart = request.url.indexOf('?')
    const result = await receiveCallback({
      ...params,
      method: request.method,
      search: queryStart === -1 ? '' : request.url.slice(queryStart),
      headers: Object.fromEntries(request.headers),
      body: await readText(request),
    })
    if (result.kind === 'challenge') {
      set.headers['content-type'] = 'text/plain; charset=utf-8'
      return result.text
    }
    if (result.kind === 'unknown') throw notFound('callback')
    if (result.kind === 'forged') {
      throw new ServiceError(
        'FORBIDDEN',
        'Invalid signature. Check the signing secret in the settings of the provider.',
        { reason: 'SIGNATURE_INVALID' },
      )
    }
    if (result.kind === 'unreadable') {
      throw new ServiceError(
        'INVALID_ARGUMENT',
        'The callback does not have the format that the provider documents.',
      )
    }
    // Providers such as Amazon SNS repeat a call after 5xx, and give it up after 4xx.
    if (result.kind === 'unverifiable') {
      throw new ServiceError('UNAVAILABLE', 'The signature cannot be checked now. Repeat the callback.', {
        retryAfterSeconds: 10,
      })
    }
    return { data: { received: true as const } }
  }
  const options = {
    parse: 'none' as const,
    params: object({ provider: Type.String(), token: Type.String() }),
    response: {
      200: Type.Union([data(object({ received: Type.Literal(true) })), Type.String()]),
    },
    detail: { hide: true },
  }

  return new Elysia({ prefix: '/v1/callbacks' })
    .post('/:provider/:token', (call) => receive(call), options)
    .get('/:provider/:token', (call) => receive(call), options)
}
