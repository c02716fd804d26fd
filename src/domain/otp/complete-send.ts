import type { CallingApplication } from '../model/application.ts'
import { attachRate, isRejected, type Rejected } from '../model/rejected.ts'
import { ReplayedError } from '../limits/idempotency.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { deriveStoredCode, type StoredCodeSource } from '../model/code.ts'
import type { OtpNeeds } from './operations.ts'
import { toSentOtp, type SentOtp } from './outgoing.ts'
import type { RateState } from '../model/rate-limit.ts'
import type { Outcome, Replay } from './send-once.ts'
import { andThen, type Awaitable } from '../model/awaitable.ts'

export type SendResult = SentOtp & {
  /** Only in `test` applications, whose messages are never sent. */
  code: string | undefined
  replayed: boolean
  rate: RateState | undefined
}

/** Completes sends and resends. */
export function createSendCompletion(
  needs: Pick<OtpNeeds, 'store' | 'keys' | 'attempts' | 'guard' | 'recordRefusedSend'>,
) {
  const { store, keys, attempts } = needs
  return completeSend

  /**
   * Turns the committed outcome into the caller's result; makes the first attempt of a new message. Runs after
   * the commit, which makes sure that every code on its way can be verified.
   *
   * @throws the refusal of the transaction, of the attempt (DELIVERY_FAILED) or of the earlier call
   */
  function completeSend(
    application: CallingApplication,
    scope: IdempotencyScope | undefined,
    outcome: Outcome | Replay,
  ): Awaitable<SendResult> {
    if (outcome.replayed) return replayEarlier(application, outcome.result)
    const { result, rate, alert, refusedSend } = outcome
    if (alert) needs.guard.onAlert(alert)
    if (isRejected(result)) {
      const recorded = refusedSend && needs.recordRefusedSend(application, refusedSend, result)
      return andThen(recorded, () => {
        throw attachRate(result, rate)
      })
    }
    const sent = toSentOtp(result)
    return andThen(makeFirstAttempt(sent, scope, application.traceparent), (failed) => {
      if (failed) throw attachRate(failed, rate)
      return { ...sent, replayed: false, rate, code: codeToShow(application, result) }
    })
  }

  /** Repeats the result of an earlier call with the same idempotency key. @throws that call's refusal */
  async function replayEarlier(
    application: CallingApplication,
    sent: SentOtp | Rejected,
  ): Promise<SendResult> {
    if (isRejected(sent)) throw new ReplayedError(sent.rejected)
    const code = await replayedCode(application, sent.requestId)
    return { ...sent, replayed: true, rate: undefined, code }
  }

  /** @returns the refusal if the message failed for good */
  function makeFirstAttempt(
    sent: SentOtp,
    scope: IdempotencyScope | undefined,
    traceparent: string | undefined,
  ) {
    const { requestId, message } = sent
    if (message === null) return undefined
    return attempts.makeFirstAttempt({ requestId, message }, { scope, value: sent, traceparent })
  }

  function codeToShow(application: CallingApplication, request: StoredCodeSource): string | undefined {
    return application.environment === 'test' ? deriveStoredCode(keys, request) : undefined
  }

  /** Derives the code again, since codes are never stored. */
  async function replayedCode(application: CallingApplication, requestId: string) {
    if (application.environment !== 'test') return undefined
    const request = await store.read.otpRequests.find(requestId)
    return request && codeToShow(application, request)
  }
}
