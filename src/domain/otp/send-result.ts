import { challengeRequired, type ChallengeAnswer } from '../guard/challenge.ts'
import type { GuardVerdict } from '../guard/judge.ts'
import {
  idempotencyInProgress,
  readEarlierResult,
  ReplayedError,
  resultChanges,
} from '../limits/idempotency.ts'
import type { CallingApplication } from '../model/application.ts'
import { deriveStoredCode } from '../model/code.ts'
import type { GuardAlert } from '../model/guard.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { tryParsePhone } from '../model/phone.ts'
import type { LoadedMessage } from '../model/message.ts'
import type { RateState } from '../model/rate-limit.ts'
import { attachRate, isRejected, reject, type Rejected } from '../model/rejected.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Change, Decision, Rows } from '../store/operation.ts'
import type { OtpNeeds } from './needs.ts'
import { toSentOtp, type SentOtp } from './new-message.ts'
import type { RefusedSend } from './refused-sends.ts'
import { firstAttemptResult } from './settle.ts'

export type SendResult = SentOtp & {
  /** Only in `test` applications, whose messages are never sent. */
  code: string | undefined
  replayed: boolean
  rate: RateState | undefined
}

/** The outcome of a new send: a request whose message goes out, or a refusal. */
export type SendDecision = {
  replayed: false
  rate: RateState | undefined
  result: OtpRequest | Rejected
  alert?: GuardAlert | undefined
  /** Set if a limit refused the send, or a challenge is needed. */
  refusedSend?: RefusedSend
  /** The message that goes to a provider. */
  outgoing?: LoadedMessage | undefined
}

/** The result of an earlier call with the same idempotency key. */
export type Replay = { replayed: true; result: SentOtp | Rejected }

/** The earlier call with the same idempotency key, if any; a refusal if it cannot be replayed. */
type EarlierSend = Replay | Rejected | undefined

/**
 * Reads the result of an earlier call with the same key. Replays come before the limits and cost nothing. While the
 * earlier call makes its first attempt, the refusal is CONFLICT (IDEMPOTENCY_IN_PROGRESS).
 */
export function readEarlierSend(
  rows: Pick<Rows, 'idempotencyRecord' | 'messages'>,
  scope: IdempotencyScope,
  now: number,
): EarlierSend {
  const record = rows.idempotencyRecord(scope)
  const earlier = record && readEarlierResult<SentOtp>(record, scope, now)
  if (!earlier || isRejected(earlier)) return earlier
  const { value, isPending } = earlier
  if (isRejected(value) || !isPending || value.message === null) return { replayed: true, result: value }
  const { requestId, phone } = value
  const country = tryParsePhone(phone)?.country ?? null
  const message = rows.messages(requestId).find((one) => one.messageNumber === value.message)
  const attempt = firstAttemptResult({ requestId, country }, message, now)
  return attempt ? { replayed: true, result: attempt.rejected ?? value } : reject(idempotencyInProgress())
}

/** Names the request of the earlier call, once its answer is there. */
export function earlierRequest(
  rows: Pick<Rows, 'idempotencyRecord'>,
  scope: IdempotencyScope | undefined,
  now: number,
): string[] {
  const record = scope && rows.idempotencyRecord(scope)
  const earlier = record && readEarlierResult<SentOtp>(record, scope, now)
  return !earlier || isRejected(earlier) || isRejected(earlier.value) ? [] : [earlier.value.requestId]
}

/** Refuses a send, with the changes that stay. */
export const refusalDecision = (
  rejected: Rejected,
  rate?: RateState,
  changes: readonly Change[] = [],
  alert?: GuardAlert,
): Decision<SendDecision> => ({ result: { replayed: false, rate, result: rejected, alert }, changes })

/** Refuses a send by a limit. Charges nothing; `completeSend` records the refusal before it is returned. */
export const limitRefusal = (rejected: Rejected, refusedSend: RefusedSend): Decision<SendDecision> => ({
  result: { replayed: false, rate: undefined, result: rejected, refusedSend },
  changes: [],
})

/**
 * Refuses a message that a passed challenge would let pass. Leaves the idempotency key free, for the call with the token.
 *
 * @param refused.changes those of the limits and the guard
 * @returns undefined if the challenge was just removed from the configuration
 */
export function challengeRefusal(
  { challenges }: Pick<OtpNeeds, 'challenges'>,
  { alert }: GuardVerdict,
  now: number,
  refused: {
    answer: ChallengeAnswer | undefined
    rate: RateState | undefined
    refusedSend: RefusedSend
    changes: readonly Change[]
  },
): Decision<SendDecision> | undefined {
  const needed = challenges.create(now)
  if (!needed) return undefined
  const { answer, rate, refusedSend, changes } = refused
  const result = reject(challengeRequired(needed, answer))
  return { result: { replayed: false, rate, result, alert, refusedSend }, changes }
}

/**
 * Adds the idempotent result of a send to its changes: final for a refusal and for a message that stays in the inbox,
 * pending until the first attempt for one that a provider gets.
 */
export function withResult(
  { result, changes }: Decision<SendDecision>,
  scope: IdempotencyScope,
  now: number,
): Decision<SendDecision> {
  const sent = isRejected(result.result) ? result.result : toSentOtp(result.result)
  const isPending = !isRejected(sent) && sent.message !== null
  return { result, changes: [...changes, ...resultChanges(scope, sent, now, { isPending })] }
}

/**
 * Turns the committed outcome of a send or resend into the caller's result; makes the first attempt of a new message. Runs
 * after the commit, which makes sure that every code on its way can be verified.
 *
 * @throws the refusal of the transaction, of the attempt (DELIVERY_FAILED) or of the earlier call
 */
export function completeSend(
  needs: CompletionNeeds,
  application: CallingApplication,
  scope: IdempotencyScope | undefined,
  outcome: SendDecision | Replay,
): SendResult | Promise<SendResult> {
  if (outcome.replayed) return replay(needs, application, outcome.result)
  const { result, rate, alert, refusedSend, outgoing } = outcome
  const { developerId, id: appId } = application
  if (alert) needs.guard.onAlert(alert, { developerId, appId })
  if (isRejected(result)) {
    const refusal = attachRate(result, rate)
    if (!refusedSend) throw refusal
    return needs.recordRefusedSend(application, refusedSend, result).then(() => Promise.reject(refusal))
  }
  const sent = toSentOtp(result)
  const code = application.environment === 'test' ? deriveStoredCode(needs.keys, result) : undefined
  const completed = { ...sent, replayed: false, rate, code }
  if (!outgoing) return completed
  const pending = { scope, value: sent, traceparent: application.traceparent }
  return needs.attempts.makeFirstAttempt(outgoing, pending).then((failed) => {
    if (failed) throw attachRate(failed, rate)
    return completed
  })
}

type CompletionNeeds = Pick<OtpNeeds, 'store' | 'keys' | 'attempts' | 'guard' | 'recordRefusedSend'>

/** Repeats the result of an earlier call with the same idempotency key. @throws that call's refusal */
async function replay(
  needs: CompletionNeeds,
  application: CallingApplication,
  sent: SentOtp | Rejected,
): Promise<SendResult> {
  if (isRejected(sent)) throw new ReplayedError(sent.rejected)
  const request =
    application.environment === 'test' && (await needs.store.read.otpRequests.find(sent.requestId))
  const code = request ? deriveStoredCode(needs.keys, request) : undefined
  return { ...sent, replayed: true, rate: undefined, code }
}
