import type { CheckToken, ChallengeService, TokenCheck } from '../domain/model/challenge.ts'
import { isRecord } from '../shared/json.ts'
import { parseJson } from './kit/json.ts'
import { createProviderHttp, isSuccess, type HttpResult } from './kit/http-client.ts'
import { systemWorld } from '../world/system.ts'
import type { World } from '../world/world.ts'

/** Both speak the protocol of reCAPTCHA. */
const verifyUrls: Record<ChallengeService['kind'], string> = {
  // https://developers.cloudflare.com/turnstile/get-started/server-side-validation/
  turnstile: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
  // https://docs.hcaptcha.com/#verify-the-user-response-server-side
  hcaptcha: 'https://api.hcaptcha.com/siteverify',
}

/** Errors of the token, which users cause. All others are about the call. */
const tokenErrors = new Set([
  'missing-input-response',
  'invalid-input-response',
  'expired-input-response',
  'already-seen-response',
  'invalid-or-already-seen-response',
  'timeout-or-duplicate',
])

/** Checks that run at once: a slow service must not hold any number of sends and connections. */
const checksMax = 100

/** Creates the check of tokens at the service that issued them. A service forgets a token that it has confirmed. */
export function createTokenCheck(options: { version: string; ca?: string | undefined; world?: World }): {
  checkToken: CheckToken
  close(): void
} {
  const { ca, version, world = systemWorld } = options
  const http = createProviderHttp({ version, world, ...(ca !== undefined && { ca }) })
  let running = 0

  return {
    async checkToken(service, token, clientIp) {
      if (running >= checksMax) return { outcome: 'unavailable', error: `${checksMax} checks at once` }
      running++
      try {
        const body = new URLSearchParams({
          secret: service.secret,
          response: token,
          ...(clientIp !== undefined && { remoteip: clientIp }),
          ...(service.kind === 'hcaptcha' && { sitekey: service.siteKey }),
        })
        const request = {
          method: 'POST',
          url: service.verifyUrl ?? verifyUrls[service.kind],
          headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
          body: body.toString(),
        } as const
        return readResult(await http.request(request, world.timers.timeoutSignal(service.timeoutMs)), service)
      } finally {
        running--
      }
    },
    close: http.close,
  }
}

function readResult(result: HttpResult, { hostnames, timeoutMs }: ChallengeService): TokenCheck {
  if (result.kind !== 'response') {
    const error = result.code === 'ABORTED' ? `no answer in ${timeoutMs / 1000} s` : result.code
    return { outcome: 'unavailable', error }
  }
  const answer = parseJson(result.text)
  if (!isRecord(answer) || typeof answer['success'] !== 'boolean')
    return { outcome: 'unavailable', error: `HTTP ${result.status} without a result` }
  if (!answer['success']) return readErrors(answer['error-codes'])
  if (!isSuccess(result)) return { outcome: 'unavailable', error: `HTTP ${result.status}` }
  const { hostname } = answer
  if (hostnames.length === 0 || (typeof hostname === 'string' && hostnames.includes(hostname.toLowerCase())))
    return { outcome: 'passed' }
  return { outcome: 'failed', error: 'passed on another host name' }
}

/** Tells errors of the token from those of the call, which the operator must mend. */
function readErrors(codes: unknown): TokenCheck {
  const words = (Array.isArray(codes) ? codes : []).filter(
    (code): code is string => typeof code === 'string' && /^[a-z-]{1,40}$/.test(code),
  )
  const isOfToken = words.length > 0 && words.every((word) => tokenErrors.has(word))
  return { outcome: isOfToken ? 'failed' : 'unavailable', error: words.join(' ') || 'no error code' }
}
