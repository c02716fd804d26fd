import { dayOf } from '../log/analytics.ts'
import { idempotencyLifetimeMs } from '../limits/idempotency.ts'
import { lowestId } from '../model/ids.ts'
import { inboxLifetimeMs } from '../otp/inbox.ts'
import type { Keys } from '../model/keys.ts'
import { messageLifetimeMs } from '../model/message.ts'
import { checkBudgetLifetimeMs } from '../limits/phone-budgets.ts'
import type { Clock } from '../model/clock.ts'
import { isPlainPhone, pseudonymOf } from '../model/pseudonyms.ts'
import { admissionLifetimeMs } from '../limits/rate-limit.ts'
import type { Walk } from './retention-store.ts'
import type { Store, Stores } from '../store/store.ts'

/** For how many days what is kept; 0 is for ever. */
export type RetentionSettings = {
  /** Phone numbers, and what else tells of the same person: metadata, addresses, what receivers answered. */
  phoneDays: number
  /** Log entries and webhook deliveries. */
  logDays: number
  /** OTP requests that have ended. */
  requestDays: number
  auditDays: number
}

/** How hard a purge works. */
export type Pace = {
  /** Rows of a transaction. */
  chunk: number
  /** Awaited between two transactions, so that calls go first; false ends the purge. */
  goOn(): Promise<boolean>
}

export type Retention = ReturnType<typeof createRetention>

/** One step of a walk or a deletion. @returns whether there may be more to do */
type Step = () => Promise<boolean>

const dayMs = 24 * 60 * 60 * 1000

/** Keeps what serves only for a time from being kept for ever, and phone numbers from being kept too long. */
export function createRetention(needs: {
  store: Store
  clock: Clock
  keys: Pick<Keys, 'pseudonym'>
  settings: RetentionSettings
}) {
  const { store, clock, keys, settings } = needs
  /** The UTC day on which all identities were last looked at. */
  let identitiesDay: number | undefined

  /** Until when things of that age were made; undefined where they are kept for ever. */
  const before = (days: number, now: number) => (days === 0 ? undefined : now - days * dayMs)

  /** Begins behind the last row that any walk has seen, and notes how far it came with what it did. */
  const walkOn =
    (walk: Walk, step: (position: string) => Promise<string | undefined>): Step =>
    async () =>
      (await step((await store.read.retention.position(walk)) ?? '')) !== undefined

  const forgetInRequests = (until: number, chunk: number) =>
    walkOn('requests', async (after) => {
      const rows = await store.read.retention.listRequests(after, lowestId('otp', until), chunk)
      const last = rows.at(-1)?.id
      if (last === undefined) return undefined
      await store.write(async (tx) => {
        for (const { id, developerId, phone } of rows) {
          if (!isPlainPhone(phone)) continue
          await tx.retention.replaceInRequest(id, pseudonymOf(keys, developerId, phone))
        }
        await tx.retention.setPosition('requests', last)
      })
      return last
    })

  const forgetInEvents = (until: number, chunk: number) =>
    walkOn('events', async (after) => {
      const rows = await store.read.retention.listEvents(Number(after), chunk)
      // What stands before an old one is old too, whatever a clock said that was set back later.
      const old = rows.slice(0, rows.findLastIndex(({ at }) => at <= until) + 1)
      const last = old.at(-1)?.seq
      if (last === undefined) return undefined
      await store.write(async (tx) => {
        for (const { seq, developerId, phone, payload } of old) {
          if (!isPlainPhone(phone)) continue
          const pseudonym = pseudonymOf(keys, developerId, phone)
          await tx.retention.replaceInEvent(seq, pseudonym, withoutPerson(payload, pseudonym))
        }
        await tx.retention.setPosition('events', String(last))
      })
      return String(last)
    })

  const forgetAnswers = (until: number, chunk: number) =>
    walkOn('answers', async (after) => {
      const last = await store.read.retention.nextAnswers(after, lowestId('dlv', until), chunk)
      if (last === undefined) return undefined
      await store.write(async (tx) => {
        await tx.retention.clearAnswers(after, last)
        await tx.retention.setPosition('answers', last)
      })
      return last
    })

  /** An identity lives as long as its phone is verified now and then, so that its age says nothing: once a day all are looked at. */
  function forgetInIdentities(until: number, chunk: number): Step {
    let after = ''
    return async () => {
      const rows = await store.read.retention.listIdentities(after, chunk)
      const old = rows.filter((row) => isPlainPhone(row.phone) && row.lastVerifiedAt <= until)
      if (old.length > 0) {
        await store.write(async (tx) => {
          for (const { id, developerId, phone } of old) {
            const pseudonym = pseudonymOf(keys, developerId, phone)
            await tx.retention.replaceInIdentity(id, phone, pseudonym, until)
          }
        })
      }
      after = rows.at(-1)?.id ?? after
      if (rows.length === chunk) return true
      identitiesDay = dayOf(clock.now())
      return false
    }
  }

  function steps(now: number, chunk: number): Step[] {
    const deletion =
      (body: (tx: Stores) => Promise<boolean>): Step =>
      () =>
        store.write(body)
    const until = {
      phones: before(settings.phoneDays, now),
      log: before(settings.logDays, now),
      requests: before(settings.requestDays, now),
      audit: before(settings.auditDays, now),
    }
    const { log, phones, requests, audit } = until
    const aged: Array<Step | false> = [
      log !== undefined && deletion((tx) => tx.webhookDeliveries.deleteOldest(log, chunk)),
      log !== undefined && deletion((tx) => tx.events.deleteOldest(log, chunk)),
      requests !== undefined && deletion((tx) => tx.otpRequests.deleteOldest(requests, chunk)),
      audit !== undefined && deletion((tx) => tx.audit.deleteOldest(audit, chunk)),
      phones !== undefined && forgetInRequests(phones, chunk),
      phones !== undefined && forgetInEvents(phones, chunk),
      phones !== undefined && forgetAnswers(phones, chunk),
      phones !== undefined && identitiesDay !== dayOf(now) && forgetInIdentities(phones, chunk),
    ]
    return [
      deletion((tx) => tx.inbox.deleteOldest(now - inboxLifetimeMs, chunk)),
      deletion((tx) => tx.idempotency.deleteOldest(now - idempotencyLifetimeMs, chunk)),
      deletion((tx) => tx.rateLimits.deleteOldest(now - admissionLifetimeMs, chunk)),
      deletion((tx) => tx.otpDeliveries.deleteOldest(now - messageLifetimeMs, chunk)),
      deletion((tx) => tx.guard.deleteOldest(now, chunk)),
      deletion((tx) => tx.checkBudgets.deleteOldest(now - checkBudgetLifetimeMs, chunk)),
      deletion((tx) => tx.refreshTokens.deleteExpired(now, chunk)),
      ...aged.filter((step) => step !== false),
    ]
  }

  return {
    /**
     * Removes what has outlived its use and puts pseudonyms in the place of old phone numbers. In chunks, each a
     * transaction of its own; may run at any time and end anywhere: the next one goes on where it was.
     */
    async purge({ chunk, goOn }: Pace): Promise<void> {
      for (const step of steps(clock.now(), chunk)) {
        while (await step()) if (!(await goOn())) return
        if (!(await goOn())) return
      }
    },
  }
}

/** The body of a webhook with something else in the place of the phone, and without metadata. */
export function withoutPerson(payload: string | null, phone: string): string | null {
  if (payload === null) return null
  // Written by recordEvent.
  const body = JSON.parse(payload) as { data: object }
  return JSON.stringify({ ...body, data: { ...body.data, phone, metadata: null } })
}
