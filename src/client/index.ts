import {
  ConnectionError,
  createError,
  OtpdError,
  TimeoutError,
  type ErrorDetail,
  type OtpdErrorCode,
} from './errors.ts'
import { readSettings, type OtpdOptions } from './settings.ts'
import type {
  CheckInput,
  Target,
  ResendInput,
  SendInput,
  SentOtp,
  VerifiedOtp,
  CanceledOtp,
  OtpRequest,
  ProofInput,
  DeliverInput,
  DeliveredCode,
  Outcome,
  ReportedOutcome,
  SessionInput,
  CreatedSession,
  Session,
  CheckReason,
  OtpCheck,
} from './types.ts'
import { verifyWebhook } from './webhooks.ts'

export * from './errors.ts'
export * from './types.ts' // `export type *` needs TypeScript 5
export type { OtpdOptions } from './settings.ts'
export type { WebhookEvent, WebhookEventType } from './webhooks.ts'

export type CallOptions = {
  signal?: AbortSignal | undefined
  timeoutMs?: number | undefined
  /** Made for each call by default, and kept over its retries. */
  idempotencyKey?: string | undefined
}

const checkReasons: Readonly<Partial<Record<OtpdErrorCode, CheckReason>>> = {
  INVALID_CODE: 'wrong',
  OTP_EXPIRED: 'expired',
  ALREADY_VERIFIED: 'used',
  ATTEMPTS_EXHAUSTED: 'exhausted',
  OTP_CANCELED: 'canceled',
  NOT_FOUND: 'unknown',
  INVALID_PHONE_NUMBER: 'unknown',
}

type Retry = 'always' | 'if_not_done'
type Call = {
  method: 'GET' | 'POST'
  path: string
  body?: object
  retry: Retry
  options: CallOptions | undefined
}

const retryAfterSecondsMax = 10
const backoffMs = 250

/** Calls otpd from a backend, with the credentials of one application. */
export class Otpd {
  /** Checks webhooks of the application. */
  readonly webhooks = { verify: verifyWebhook }
  readonly #settings: ReturnType<typeof readSettings>

  /** @throws Error if the address or a credential is missing, or in a browser */
  constructor(options: OtpdOptions = {}) {
    this.#settings = readSettings(options)
  }

  /** Sends a code. @throws OtpdError; ChallengeRequiredError if the user must pass a challenge first */
  send(input: SendInput, options?: CallOptions): Promise<SentOtp> {
    return this.#call(once('/v1/otp/send', input, options))
  }

  /** Sends the same code once more. @throws OtpdError */
  resend(input: ResendInput, options?: CallOptions): Promise<SentOtp> {
    return this.#call(once('/v1/otp/resend', input, options))
  }

  /**
   * Checks a code. A wrong, malformed, expired, used, canceled or unknown one is a result, and so is one for a malformed
   * number. @throws OtpdError for all else
   */
  async check(input: CheckInput, options?: CallOptions): Promise<OtpCheck> {
    try {
      return { verified: true, ...(await this.verify(input, options)) }
    } catch (error) {
      if (!(error instanceof OtpdError)) throw error
      const isMalformed = error.code === 'INVALID_ARGUMENT' && !/^[0-9]{6}$/.test(input.code)
      const reason = isMalformed ? 'wrong' : checkReasons[error.code]
      if (reason === undefined) throw error
      const remaining = error.metadata['attemptsRemaining']
      return {
        verified: false,
        reason,
        attemptsRemaining: typeof remaining === 'number' ? remaining : undefined,
      }
    }
  }

  /** Checks a code. @throws OtpdError if it is not right */
  verify(input: CheckInput, options?: CallOptions): Promise<VerifiedOtp> {
    return this.#call({ method: 'POST', path: '/v1/otp/verify', body: input, retry: 'if_not_done', options })
  }

  /** Verifies a phone by a proof instead of a code. @throws OtpdError with the code PROOF_REJECTED for a bad one */
  prove(input: ProofInput, options?: CallOptions): Promise<VerifiedOtp> {
    return this.#call(once('/v1/otp/proofs', input, options))
  }

  /** Cancels a pending request. @throws OtpdError */
  cancel(input: Target, options?: CallOptions): Promise<CanceledOtp> {
    return this.#call({ method: 'POST', path: '/v1/otp/cancel', body: input, retry: 'if_not_done', options })
  }

  /** Delivers a code of your own. @throws OtpdError */
  deliver(input: DeliverInput, options?: CallOptions): Promise<DeliveredCode> {
    return this.#call(once('/v1/otp/deliver', input, options))
  }

  /** Reports whether a code of your own was entered. @param id of the delivered code @throws OtpdError */
  reportOutcome(id: string, outcome: Outcome, options?: CallOptions): Promise<ReportedOutcome> {
    const path = `/v1/otp/deliver/${encodeURIComponent(id)}/outcome`
    return this.#call({ method: 'POST', path, body: { outcome }, retry: 'always', options })
  }

  /** Makes a link to the ready page, on which one user verifies one phone. @throws OtpdError */
  createSession(input: SessionInput, options?: CallOptions): Promise<CreatedSession> {
    return this.#call({ method: 'POST', path: '/v1/otp/sessions', body: input, retry: 'always', options })
  }

  /** Reads a session of the ready page: only `verified` counts, not what the browser says. @throws OtpdError */
  getSession(id: string, options?: CallOptions): Promise<Session> {
    const path = `/v1/otp/sessions/${encodeURIComponent(id)}`
    return this.#call({ method: 'GET', path, retry: 'always', options })
  }

  /** Reads a request. @throws OtpdError */
  get(requestId: string, options?: CallOptions): Promise<OtpRequest> {
    const path = `/v1/otp/${encodeURIComponent(requestId)}`
    return this.#call({ method: 'GET', path, retry: 'always', options })
  }

  async #call<T>(call: Call): Promise<T> {
    const { maxRetries } = this.#settings
    requireHeaderValue(call.options?.idempotencyKey)
    for (let retries = 0; ; retries++) {
      try {
        return await this.#try<T>(call)
      } catch (error) {
        if (!(error instanceof OtpdError) || retries >= maxRetries || !mayRetry(error, call.retry))
          throw error
        const waitMs = Math.random() * backoffMs * 2 ** retries + backoffMs / 2
        await wait((error.retryAfterSeconds ?? 0) * 1000 + waitMs, call.options?.signal)
      }
    }
  }

  async #try<T>({ method, path, body, options = {} }: Call): Promise<T> {
    const { url, fetch: send, headers, timeoutMs } = this.#settings
    const timeout = AbortSignal.timeout(options.timeoutMs ?? timeoutMs)
    let response: Response
    let text: string
    try {
      response = await send(url + path, {
        method,
        redirect: 'error',
        signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
        headers: {
          ...headers,
          ...(body && { 'content-type': 'application/json' }),
          ...(options.idempotencyKey !== undefined && { 'idempotency-key': options.idempotencyKey }),
        },
        ...(body && { body: JSON.stringify(body) }),
      })
      text = await response.text()
    } catch (cause) {
      if (options.signal?.aborted) throw cause
      throw timeout.aborted
        ? new TimeoutError(`${url} did not answer in time.`, { status: 0, code: 'TIMEOUT', cause })
        : new ConnectionError(`${url} cannot be reached.`, { status: 0, code: 'CONNECTION', cause })
    }
    const answer = parse(text)
    if (response.ok && answer?.data !== undefined) return answer.data as T
    const { status } = response
    const {
      code = 'UNKNOWN',
      message = `otpd answered ${status}.`,
      reason,
      details,
      metadata,
    } = answer?.error ?? {}
    throw createError(message, {
      status,
      code,
      reason,
      details,
      metadata,
      requestId: response.headers.get('x-request-id') ?? undefined,
      retryAfterSeconds: Number(response.headers.get('retry-after')) || undefined,
    })
  }
}

/** A call that is repeated under one idempotency key, so that nothing is sent twice. */
function once(path: string, body: object, options: CallOptions | undefined): Call {
  const idempotencyKey = options?.idempotencyKey ?? crypto.randomUUID()
  return { method: 'POST', path, body, retry: 'always', options: { ...options, idempotencyKey } }
}

/** Refuses a key that no header can have, before `fetch` does as if the server were away. @throws InvalidRequestError */
function requireHeaderValue(idempotencyKey = '-') {
  if (/^[!-~]{1,255}$/.test(idempotencyKey)) return
  throw createError('idempotencyKey: Expected 1 to 255 visible ASCII characters, without spaces.', {
    status: 400,
    code: 'INVALID_ARGUMENT',
    reason: 'IDEMPOTENCY_KEY_INVALID',
  })
}

/**
 * Tells whether a call may be repeated. After a lost answer a check is not: a right code would then be told to be used.
 */
function mayRetry({ status, code, reason, retryAfterSeconds = 0 }: OtpdError, retry: Retry): boolean {
  // A try whose answer was lost goes on at the server.
  if (reason === 'IDEMPOTENCY_IN_PROGRESS') return true
  if (status === 429) return retryAfterSeconds > 0 && retryAfterSeconds <= retryAfterSecondsMax
  if (status === 503) return retryAfterSeconds <= retryAfterSecondsMax
  if (retry === 'if_not_done') return false
  return status === 0 || status === 408 || status === 500 || (status === 502 && code !== 'DELIVERY_FAILED')
}

type Answer = {
  data?: unknown
  error?: {
    code?: OtpdErrorCode
    message?: string
    reason?: string
    details?: ErrorDetail[]
    metadata?: Record<string, unknown>
  }
}

function parse(text: string): Answer | undefined {
  try {
    const answer: unknown = JSON.parse(text)
    return typeof answer === 'object' && answer !== null ? answer : undefined
  } catch {
    return undefined
  }
}

/** Waits. @throws the reason of the signal once it is aborted */
const wait = (ms: number, signal: AbortSignal | undefined) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    })
  })
