import type { HttpResponse, SendHttp } from './http.ts'
import { foreignResponseError } from './response-error.ts'
import { isRecord } from '../../src/shared/json.ts'
import type { ServerChoice } from './server-choice.ts'

/** Tells whether a response to `GET /v1/health` is one of an otpd server. */
export const isOtpdHealth = ({ status, json }: HttpResponse) =>
  status === 200 && isRecord(json) && isRecord(json.data) && json.data.service === 'otpd'

/**
 * Makes a `SendHttp` that refuses the success of a server that is not otpd, such as another program that took the port: a
 * command would report what that server never did. The request ids of otpd begin with `req_`. Behind a proxy that replaces
 * them, `GET /v1/health` is asked once.
 *
 * The function throws what `send` throws, and CliError UNEXPECTED_ANSWER.
 */
export function requireOtpd(server: ServerChoice, send: SendHttp): SendHttp {
  let isOtpd = false
  return async (request) => {
    const response = await send(request)
    if (response.status >= 400) return response
    isOtpd ||=
      /\breq_/.test(response.headers.get('x-request-id') ?? '') ||
      isOtpdHealth(await send({ method: 'GET', path: '/v1/health' }))
    if (!isOtpd) throw foreignResponseError(server, response.status)
    return response
  }
}
