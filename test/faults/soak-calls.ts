import type { TestApp } from '../helpers/webhook-client.ts'
import { newPhone } from './calls.ts'

/** A call of the mix. `expected` is the status, or the error code. */
export type ExpectedCall = {
  kind: string
  method: string
  path: string
  headers: Record<string, string>
  body?: object
  expected: string
  /** Called with the response if it was the expected one. */
  onExpected?: (data: Record<string, unknown>) => void
}

type SentCode = {
  app: TestApp
  phone: string
  requestId: string
  code: string
  wrong: number
  sentAt: number
}

export type CallMixOptions = {
  /** Test applications, whose codes are in the response. */
  apps: TestApp[]
  /** Live application. Its codes stay in the inbox, and expire without being verified. */
  live: TestApp
  /** Returns the current credentials of the developer. */
  bearer: () => Record<string, string>
  random: () => number
  /** Called for each event that a response implies. A resend is another `otp.sent`. */
  onEvent(type: 'otp.sent' | 'otp.verified', requestId: string): void
}

/** Limit of remembered codes. The ones beyond it are dropped and expire. */
const codesMax = 500
const awaitingResendMax = 400
/** The server requires 30 s between resends. The margin covers the time until the response arrived. */
const resendRefusedBeforeMs = 20_000
const resendAllowedAfterMs = 32_000
const wrongMax = 3

/** Creates a generator of calls by applications and a console, in the proportions of `shares`. */
export function createCallMix({ apps, live, bearer, random, onEvent }: CallMixOptions): () => ExpectedCall {
  const codes: SentCode[] = []
  const awaitingResend: SentCode[] = []
  const verified: SentCode[] = []
  let nextAppIndex = 0

  const pickApp = (): TestApp => apps[nextAppIndex++ % apps.length] ?? live
  const readCall = (path: string, headers = bearer()): ExpectedCall => {
    const kind = path.replace(/[?%].*/, '')
    return { kind, method: 'GET', path, headers, expected: '200' }
  }
  const postCall = (action: string, app: TestApp, body: object, expected: string): ExpectedCall => {
    const path = `/v1/otp/${action}`
    return { kind: `${path} → ${expected}`, method: 'POST', path, headers: app.headers, body, expected }
  }
  const addBounded = (list: SentCode[], code: SentCode, max: number) => {
    list.push(code)
    if (list.length > max) list.shift()
  }

  function send(): ExpectedCall {
    const app = pickApp()
    const phone = newPhone()
    const onExpected: ExpectedCall['onExpected'] = ({ requestId, code }) => {
      const sentCode = {
        app,
        phone,
        requestId: String(requestId),
        code: String(code),
        wrong: 0,
        sentAt: Date.now(),
      }
      onEvent('otp.sent', sentCode.requestId)
      if (awaitingResend.length < awaitingResendMax && random() < 0.2) awaitingResend.push(sentCode)
      else addBounded(codes, sentCode, codesMax)
    }
    return { ...postCall('send', app, { phone }, '201'), onExpected }
  }

  const sendLive = (): ExpectedCall => ({
    ...postCall('send', live, { phone: newPhone(), ttlSeconds: 60 }, '201'),
    onExpected: ({ requestId }) => onEvent('otp.sent', String(requestId)),
  })

  function verify(): ExpectedCall {
    const sentCode = codes.shift()
    if (!sentCode) return send()
    const { app, requestId, code } = sentCode
    const onExpected = () => {
      onEvent('otp.verified', requestId)
      addBounded(verified, sentCode, codesMax)
    }
    return { ...postCall('verify', app, { requestId, code }, '200'), onExpected }
  }

  function guess(): ExpectedCall {
    const sentCode = codes.shift()
    if (!sentCode) return send()
    const code = String((Number(sentCode.code) + 1) % 1_000_000).padStart(6, '0')
    const onExpected = () => {
      if (++sentCode.wrong < wrongMax) addBounded(codes, sentCode, codesMax)
    }
    return {
      ...postCall('verify', sentCode.app, { requestId: sentCode.requestId, code }, 'INVALID_CODE'),
      onExpected,
    }
  }

  function verifyAgain(): ExpectedCall {
    const sentCode = verified.shift()
    if (!sentCode) return send()
    const { app, requestId, code } = sentCode
    return postCall('verify', app, { requestId, code }, 'ALREADY_VERIFIED')
  }

  function resend(): ExpectedCall {
    const [sentCode] = awaitingResend
    if (!sentCode) return send()
    const { app, requestId } = sentCode
    const age = Date.now() - sentCode.sentAt
    if (age < resendRefusedBeforeMs) return postCall('resend', app, { requestId }, 'RATE_LIMITED')
    if (age < resendAllowedAfterMs) return send()
    awaitingResend.shift()
    const onExpected = () => {
      onEvent('otp.sent', requestId)
      addBounded(codes, sentCode, codesMax)
    }
    return { ...postCall('resend', app, { requestId }, '200'), onExpected }
  }

  function lookUp(): ExpectedCall {
    const sentCode = verified.at(-1)
    if (!sentCode) return send()
    const key = { 'x-api-key': sentCode.app.headers['x-api-key'] ?? '' }
    return readCall(`/v1/users/${encodeURIComponent(sentCode.phone)}`, key)
  }

  const weightedCalls: Array<[percent: number, next: () => ExpectedCall]> = [
    [34, send],
    [8, sendLive],
    [24, verify],
    [8, guess],
    [2, verifyAgain],
    [4, resend],
    [3, lookUp],
    [4, () => readCall('/v1/otp?limit=20')],
    [1, () => readCall(`/v1/otp?limit=20&status=verified&appId=${pickApp().id}`)],
    [4, () => readCall('/v1/logs?limit=50')],
    [2, () => readCall('/v1/analytics/summary')],
    [1, () => readCall('/v1/analytics/timeseries')],
    [1, () => readCall('/v1/inbox?limit=20')],
    [1, () => readCall('/v1/applications')],
    [1, () => readCall('/v1/users?limit=20')],
    [2, () => readCall('/v1/health/ready', {})],
  ]

  return () => {
    let remaining = random() * 100
    return (weightedCalls.find(([percent]) => (remaining -= percent) < 0)?.[1] ?? send)()
  }
}
