import type { TestApp } from '../helpers/webhook-client.ts'
import { newPhone } from './calls.ts'

/** One call of the mix. `expected` is the status, or the code of the error. */
export type Call = {
  kind: string
  method: string
  path: string
  headers: Record<string, string>
  body?: object
  expected: string
  /** Told of the answer, where it was the expected one. */
  done?: (data: Record<string, unknown>) => void
}

type Code = { app: TestApp; phone: string; requestId: string; code: string; wrong: number; sentAt: number }

export type MixNeeds = {
  /** Their codes come with the answer. */
  apps: TestApp[]
  /** Its codes are never verified: they lie in the inbox, and run out. */
  live: TestApp
  /** The credentials of the developer, as they are now. */
  bearer: () => Record<string, string>
  random: () => number
  /** Told of each event that an answer stands for; a resend is one more `otp.sent`. */
  happened(type: 'otp.sent' | 'otp.verified', requestId: string): void
}

/** Those above wait for nobody, and run out as codes do. */
const codesMax = 500
const restingMax = 400
/** The server wants thirty seconds; its clock and ours meet in an answer. */
const surelyTooSoonMs = 20_000
const surelyRestedMs = 32_000
const wrongMax = 3

/** What callers and a console ask for, in the proportions of `shares`. @returns the next call */
export function createMix({ apps, live, bearer, random, happened }: MixNeeds): () => Call {
  const codes: Code[] = []
  const resting: Code[] = []
  const verified: Code[] = []
  let turn = 0

  const pick = (): TestApp => apps[turn++ % apps.length] ?? live
  const read = (path: string, headers = bearer()): Call => {
    const kind = path.replace(/[?%].*/, '')
    return { kind, method: 'GET', path, headers, expected: '200' }
  }
  const post = (what: string, app: TestApp, body: object, expected: string): Call => {
    const path = `/v1/otp/${what}`
    return { kind: `${path} → ${expected}`, method: 'POST', path, headers: app.headers, body, expected }
  }
  const keep = (list: Code[], code: Code, max: number) => {
    list.push(code)
    if (list.length > max) list.shift()
  }

  function send(): Call {
    const app = pick()
    const phone = newPhone()
    const done: Call['done'] = ({ requestId, code }) => {
      const made = {
        app,
        phone,
        requestId: String(requestId),
        code: String(code),
        wrong: 0,
        sentAt: Date.now(),
      }
      happened('otp.sent', made.requestId)
      if (resting.length < restingMax && random() < 0.2) resting.push(made)
      else keep(codes, made, codesMax)
    }
    return { ...post('send', app, { phone }, '201'), done }
  }

  const sendLive = (): Call => ({
    ...post('send', live, { phone: newPhone(), ttlSeconds: 60 }, '201'),
    done: ({ requestId }) => happened('otp.sent', String(requestId)),
  })

  function verify(): Call {
    const known = codes.shift()
    if (!known) return send()
    const { app, requestId, code } = known
    const done = () => {
      happened('otp.verified', requestId)
      keep(verified, known, codesMax)
    }
    return { ...post('verify', app, { requestId, code }, '200'), done }
  }

  function guess(): Call {
    const known = codes.shift()
    if (!known) return send()
    const code = String((Number(known.code) + 1) % 1_000_000).padStart(6, '0')
    const done = () => {
      if (++known.wrong < wrongMax) keep(codes, known, codesMax)
    }
    return { ...post('verify', known.app, { requestId: known.requestId, code }, 'INVALID_CODE'), done }
  }

  function verifyAgain(): Call {
    const known = verified.shift()
    if (!known) return send()
    const { app, requestId, code } = known
    return post('verify', app, { requestId, code }, 'ALREADY_VERIFIED')
  }

  function resend(): Call {
    const [known] = resting
    if (!known) return send()
    const { app, requestId } = known
    const age = Date.now() - known.sentAt
    if (age < surelyTooSoonMs) return post('resend', app, { requestId }, 'RATE_LIMITED')
    if (age < surelyRestedMs) return send()
    resting.shift()
    const done = () => {
      happened('otp.sent', requestId)
      keep(codes, known, codesMax)
    }
    return { ...post('resend', app, { requestId }, '200'), done }
  }

  function lookUp(): Call {
    const known = verified.at(-1)
    if (!known) return send()
    const key = { 'x-api-key': known.app.headers['x-api-key'] ?? '' }
    return read(`/v1/users/${encodeURIComponent(known.phone)}`, key)
  }

  const shares: Array<[percent: number, next: () => Call]> = [
    [34, send],
    [8, sendLive],
    [24, verify],
    [8, guess],
    [2, verifyAgain],
    [4, resend],
    [3, lookUp],
    [4, () => read('/v1/otp?limit=20')],
    [1, () => read(`/v1/otp?limit=20&status=verified&appId=${pick().id}`)],
    [4, () => read('/v1/logs?limit=50')],
    [2, () => read('/v1/analytics/summary')],
    [1, () => read('/v1/analytics/timeseries')],
    [1, () => read('/v1/inbox?limit=20')],
    [1, () => read('/v1/applications')],
    [1, () => read('/v1/users?limit=20')],
    [2, () => read('/v1/health/ready', {})],
  ]

  return () => {
    let point = random() * 100
    return (shares.find(([percent]) => (point -= percent) < 0)?.[1] ?? send)()
  }
}
