import { createMemoryRateLimiter } from '../limits/memory-rate-limit.ts'
import type { CallingApplication } from '../model/application.ts'
import { canonicalPhone } from '../../shared/spellings.ts'
import type { Clock } from '../model/clock.ts'
import type { PhoneRecord } from '../model/phone-record.ts'
import { formatRefusedSends, type RefusedSends } from '../model/refused-sends.ts'
import type { Rejected } from '../model/rejected.ts'
import { findRefusals, withRefusals, type LoggedRefusals } from '../model/request-history.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Change, Operation } from '../store/operation.ts'
import type { Store } from '../store/store.ts'
import { dayMs, minuteMs } from '../../shared/durations.ts'

/** A send that a limit refused, and the request that it follows: the newest of the phone, or the one to send again. */
export type RefusedSend = { phone: string; requestId: string | null }

/** Refusals that each node writes down: of one phone, of one phone without a request, and of one developer. */
const perMinute = { phone: 10, unknownPhone: 1, developer: 120 }

export type RecordRefusedSend = ReturnType<typeof createRefusedSends>

/**
 * Creates the record of refused sends: for people who support the owner of the phone. A refusal costs little, so this must
 * too: what each node writes is bounded, and the log gets one entry a minute and phone.
 */
export function createRefusedSends({
  store,
  clock,
  onError,
}: {
  store: Pick<Store, 'decide'>
  clock: Clock
  /** Called if a refusal cannot be recorded. Its caller gets the refusal all the same, and so does not try again. */
  onError(error: unknown): void
}) {
  const limiter = createMemoryRateLimiter(clock)
  const admits = (policy: keyof typeof perMinute, subject: string) =>
    limiter.admits({ policy, subject, limit: perMinute[policy], windowMs: minuteMs })

  /** Counts the refused send in the history of its request, and logs it. Runs after the refusal was decided. */
  return async (
    application: CallingApplication,
    { phone, requestId }: RefusedSend,
    { rejected: { code, reason = code, retryAfterSeconds = 0 } }: Rejected,
  ): Promise<void> => {
    const { id: appId, developerId, environment } = application
    const subject = `${developerId} ${environment} ${canonicalPhone(phone)}`
    if (!admits(requestId === null ? 'unknownPhone' : 'phone', subject)) return
    if (!admits('developer', developerId)) return
    const recording: Operation<void> = {
      preload: { first: () => (requestId === null ? {} : { request: requestId }) },
      decide(rows) {
        const now = rows.now()
        const request = requestId === null ? undefined : rows.request(requestId)
        const nextAt = now + retryAfterSeconds * 1000
        const { sends, isLogged } = countRefusal(request, { reason, nextAt }, now)
        const changes: Change[] = []
        if (request)
          changes.push({
            kind: 'request',
            request: { ...request, history: withRefusals(request, sends) },
            isNew: false,
          })
        const entry = {
          type: 'otp.refused',
          developerId,
          appId,
          requestId: request?.id ?? null,
          // As the request has it: both are sealed as one value.
          phone: request?.phone ?? phone,
          status: null,
        } as const
        if (isLogged)
          changes.push({
            kind: 'event',
            event: {
              entry: { ...entry, detail: formatRefusedSends(sends), at: now },
              deliveries: [],
              toPayload: () => '',
            },
          })
        return { result: undefined, changes }
      },
    }
    await store.decide(recording).catch(onError)
  }
}

/** Adds a refusal to those that followed the last message of a request within a day. */
function countRefusal(
  request: OtpRequest | undefined,
  last: Pick<RefusedSends, 'reason' | 'nextAt'>,
  now: number,
): { sends: LoggedRefusals; isLogged: boolean } {
  const earlier = request && findRefusals(request)
  if (!earlier || now - earlier.at >= dayMs)
    return { sends: { ...last, count: 1, since: now, at: now, loggedAt: now }, isLogged: true }
  // A clock that was set back logs at once.
  const isLogged = Math.abs(now - earlier.loggedAt) >= minuteMs
  const { count, since, loggedAt } = earlier
  const sends = { ...last, count: count + 1, since, at: now, loggedAt: isLogged ? now : loggedAt }
  return { sends, isLogged }
}

/** Describes a refused send to a phone of this record. */
export const refusedSendTo = ({ phone }: { phone: string }, record: PhoneRecord): RefusedSend => ({
  phone,
  requestId: record.newestRequest,
})
