import type { Outcome } from './client.ts'
import { isSamePayment, type Payment } from './payments.ts'
import type { SentMessage } from './peers.ts'

/** A request whose send was answered, and the answers to calls about it. */
export type KnownRequest = {
  id: string
  app: number
  phone: string
  /** Bound into its code. */
  payment: Payment | null
  /** By the message that the provider got; empty if none has arrived. */
  code: string
  messages: SentMessage[]
  wrongAnswers: number
  successes: number
  isCanceled: boolean
  isErased: boolean
}

export type Violation = { rule: string; detail: string }

export type Model = ReturnType<typeof createModel>

const minuteMs = 60_000
export const attemptsMax = 5

/**
 * Checks the answers alone, as a caller could: a code is right once, five attempts are all,
 * limits hold in any minute, and nothing that was acknowledged is lost.
 */
export function createModel(
  limits: { sendPerMinute: number; verifyPerMinute: number },
  onViolation: (one: Violation) => void,
) {
  const requests: KnownRequest[] = []
  const byId = new Map<string, KnownRequest>()
  /** Messages that arrived before the answer of their send. */
  const codes = new Map<string, { code: string; messages: SentMessage[] }>()
  const admitted = new Map<string, Outcome[]>()

  const violate = (rule: string, detail: string) => onViolation({ rule, detail })

  /** Checks that no minute has more admissions than the limit, of those that both began and ended in it. */
  function admit(kind: 'send' | 'verify', app: number, outcome: Outcome) {
    const name = `${kind} ${app}`
    const list = (admitted.get(name) ?? []).filter(({ startedAt }) => startedAt > outcome.endedAt - minuteMs)
    list.push(outcome)
    admitted.set(name, list)
    const limit = kind === 'send' ? limits.sendPerMinute : limits.verifyPerMinute
    if (list.length > limit)
      violate('limit in any minute', `${list.length} of ${kind} for application ${app}`)
  }

  /** Checks that the message of a payment shows it, and only that one. */
  function checkText({ id, payment }: KnownRequest, { text }: SentMessage) {
    const isShown = payment && text.includes(`Pay ${payment.amount} to ${payment.payee}: `)
    if (payment ? !isShown : text.includes('Pay ')) violate('a message shows its payment', `${id}: ${text}`)
  }

  const recentIn = (from: readonly KnownRequest[], back: number) =>
    from.at(-1 - (back % Math.max(1, from.length)))

  return {
    requests,
    find: (id: string) => byId.get(id),
    /** Finds one of the newest requests. */
    recent: (back: number) => recentIn(requests, back),

    onMessage(message: SentMessage) {
      const { requestId, code } = message
      const known = codes.get(requestId) ?? { code, messages: [] }
      if (known.code === '') known.code = code
      if (known.code !== code) violate('one code per request', requestId)
      known.messages.push(message)
      codes.set(requestId, known)
      const request = byId.get(requestId)
      if (!request) return
      request.code = code
      checkText(request, message)
    },

    onSend(app: number, { phone, payment }: Pick<KnownRequest, 'phone' | 'payment'>, outcome: Outcome) {
      const { answer } = outcome
      if (answer?.status !== 201) return
      admit('send', app, outcome)
      const id = String(answer.data['requestId'])
      if (byId.has(id)) return violate('a new request for each send', id)
      const known = codes.get(id) ?? { code: '', messages: [] }
      codes.set(id, known)
      const request: KnownRequest = {
        id,
        app,
        phone,
        payment,
        code: known.code,
        messages: known.messages,
        wrongAnswers: 0,
        successes: 0,
        isCanceled: false,
        isErased: false,
      }
      requests.push(request)
      byId.set(id, request)
      for (const message of request.messages) checkText(request, message)
    },

    onVerify(
      app: number,
      outcome: Outcome,
      expected: KnownRequest,
      guess: { code: string; payment: Payment | null },
    ) {
      const { answer } = outcome
      if (!answer || answer.status >= 500) return
      const isWrong = answer.text.includes('"INVALID_CODE"')
      if (answer.status !== 200 && !isWrong) return
      admit('verify', app, outcome)
      const id = answer.status === 200 ? String(answer.data['requestId']) : expected.id
      const request = byId.get(id)
      if (!request) return
      if (answer.status === 200) {
        request.successes++
        if (request.successes > 1) violate('a code is right once', id)
        if (request.code !== '' && guess.code !== request.code) violate('only the right code is right', id)
        if (!isSamePayment(guess.payment, request.payment))
          violate('a code is right for its payment alone', `${id}: ${JSON.stringify(guess.payment)}`)
        if (request.isCanceled) violate('a canceled code stays canceled', id)
        return
      }
      if (guess.code === request.code && isSamePayment(guess.payment, request.payment))
        violate('the right code is right', `${id}: ${answer.text}`)
      request.wrongAnswers++
      if (request.wrongAnswers > attemptsMax) violate('five attempts', id)
    },

    onCancel(request: KnownRequest, { answer }: Outcome) {
      if (answer?.status !== 200) return
      if (request.successes > 0) violate('a verified code is not canceled', request.id)
      request.isCanceled = true
    },

    /**
     * Compares what the server says of a request with what it said before.
     *
     * @param before the request as it was known when the call started: other calls end while it is read
     */
    onGet(request: KnownRequest, { answer }: Outcome, before: KnownRequest = request) {
      if (request.isErased) return
      if (answer?.status === 404) return violate('nothing acknowledged is lost', `${request.id} is not found`)
      if (answer?.status !== 200) return
      const { status, attempts } = answer.data as unknown as { status: string; attempts: number }
      if (before.successes > 0 && status !== 'verified')
        violate('nothing acknowledged is lost', `${request.id} was verified and is ${status}`)
      if (before.isCanceled && status !== 'canceled')
        violate('nothing acknowledged is lost', `${request.id} was canceled and is ${status}`)
      if (attempts < before.wrongAnswers)
        violate(
          'nothing acknowledged is lost',
          `${request.id}: ${attempts} of ${before.wrongAnswers} attempts`,
        )
      if (attempts > attemptsMax) violate('five attempts', `${request.id} has ${attempts}`)
    },
  }
}
