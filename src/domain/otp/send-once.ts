import { firstAttemptResult } from './delivery-attempts.ts'
import { isRejected, type Rejected } from '../model/rejected.ts'
import { withGuard } from '../guard/fail-open.ts'
import type { Guard } from '../guard/guard.ts'
import type { GuardAlert } from '../model/guard.ts'
import { claimKey, idempotencyInProgress, saveResult, type EarlierResult } from '../limits/idempotency.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import type { OtpNeeds, OtpTables } from './operations.ts'
import type { RateState } from '../model/rate-limit.ts'
import { toSentOtp, type SentOtp } from './outgoing.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Stores } from '../store/store.ts'

/** The committed outcome of a new send: a request whose message goes out, or a refusal that was charged. */
export type Outcome = {
  replayed: false
  rate: RateState | undefined
  result: OtpRequest | Rejected
  alert?: GuardAlert | undefined
}

/** The result of an earlier call with the same idempotency key. */
export type Replay = { replayed: true; result: SentOtp | Rejected }

type SendTransaction = (tx: Pick<Stores, OtpTables>, guard: Guard, now: number) => Promise<Outcome>

/**
 * Commits `transaction` together with its idempotent result, or replays an earlier call's. Replays come
 * before the limits and cost nothing. If the guard itself fails, the transaction runs again without it (fail
 * open).
 */
export function commitOnce(
  { guard, store, clock }: Pick<OtpNeeds, 'guard' | 'store' | 'clock'>,
  scope: IdempotencyScope | undefined,
  transaction: SendTransaction,
): Promise<Outcome | Replay> {
  return withGuard(guard, (trackedGuard) =>
    store.write(async (tx) => {
      const now = clock.now()
      const earlier = await claimKey<SentOtp>(tx, scope, now)
      if (earlier) return replay(tx, earlier, now)
      const outcome = await transaction(tx, trackedGuard, now)
      await savePreliminaryResult(tx, scope, outcome.result)
      return outcome
    }),
  )
}

/**
 * Saves the result of a refused send or of an inbox message as final; a message for a provider stays pending
 * until its first attempt.
 */
function savePreliminaryResult(
  tx: Pick<Stores, 'idempotency'>,
  scope: IdempotencyScope | undefined,
  result: OtpRequest | Rejected,
): Promise<void> {
  if (isRejected(result)) return saveResult(tx, scope, result)
  const sent = toSentOtp(result)
  return saveResult(tx, scope, sent, { isPending: sent.message !== null })
}

/**
 * Returns the result of an earlier call with the same key.
 *
 * @throws CONFLICT (IDEMPOTENCY_IN_PROGRESS) while the earlier call makes its first attempt
 */
async function replay(
  tx: Pick<Stores, 'otpDeliveries'>,
  { value, isPending }: EarlierResult<SentOtp>,
  now: number,
): Promise<Replay> {
  if (isRejected(value) || !isPending || value.message === null) return { replayed: true, result: value }
  const { requestId, message } = value
  const attempt = await firstAttemptResult(tx, { requestId, message }, now)
  if (!attempt) throw idempotencyInProgress()
  return { replayed: true, result: attempt.rejected ?? value }
}
