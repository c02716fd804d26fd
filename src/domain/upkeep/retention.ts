import { breakdownDays } from '../log/analytics.ts'
import { deleteExpiredRules } from '../guard/list-rules.ts'
import { idempotencyLifetimeMs } from '../limits/idempotency.ts'
import { lowestId } from '../model/ids.ts'
import { inboxLifetimeMs } from '../otp/inbox.ts'
import { staleLoginFailures } from '../accounts/login-attempts.ts'
import type { Keys } from '../model/keys.ts'
import { messageLifetimeMs } from '../model/message.ts'
import { checkBudgetLifetimeMs } from '../limits/check-budget.ts'
import type { Clock } from '../model/clock.ts'
import { createLinkCutter, expirePhone } from './phone-expiry.ts'
import type { PhoneRecord } from '../model/phone-record.ts'
import { isPlainPhone, derivePseudonym } from '../model/pseudonyms.ts'
import { relayedLifetimeMs } from '../model/relayed-message.ts'
import { admissionLifetimeMs } from '../model/rate-limit.ts'
import { sessionRetentionMs } from '../model/session.ts'
import type { ScanName } from '../store/retention.ts'
import type { Store, Stores } from '../store/store.ts'
import { dayMs, utcDay } from '../../shared/durations.ts'

/** Retention periods in days; 0 keeps data indefinitely. */
export type RetentionSettings = {
  /** Phone numbers and other personal data: metadata, IP addresses, webhook responses. */
  phoneDays: number
  /** Log entries and webhook deliveries. */
  logDays: number
  /** OTP requests. */
  requestDays: number
  auditDays: number
}

/** Limits the load of a purge. */
export type PurgeThrottle = {
  /** Rows per transaction. */
  batchSize: number
  /** Awaited between transactions, so that requests go first; false ends the purge. */
  yieldToRequests(): Promise<boolean>
}

/** Names of the stores whose rows expire or hold phone numbers. */
type SweptTables =
  | 'analytics'
  | 'audit'
  | 'checkBudgets'
  | 'developers'
  | 'events'
  | 'guard'
  | 'idempotency'
  | 'inbox'
  | 'listRules'
  | 'loginAttempts'
  | 'messages'
  | 'otpRequests'
  | 'otpSessions'
  | 'phones'
  | 'rateLimits'
  | 'refreshTokens'
  | 'relayedMessages'
  | 'retention'
  | 'webhookDeliveries'

/** One batch of a scan or a deletion. @returns true if there may be more to do */
type Step = () => Promise<boolean>

/** Creates the sweeper that deletes expired data and pseudonymizes old phone numbers. */
export function createRetention(needs: {
  store: Store<SweptTables>
  clock: Clock
  keys: Pick<Keys, 'phone' | 'pseudonym'>
  settings: RetentionSettings
}) {
  const { store, clock, keys, settings } = needs

  /** Returns the time up to which data is too old; undefined if it is kept indefinitely. */
  const cutoffFor = (days: number, now: number) => (days === 0 ? undefined : now - days * dayMs)

  /** Continues a scan after its checkpoint. `step` stores the new checkpoint in the transaction of its changes. */
  const resumeScan =
    (scan: ScanName, step: (checkpoint: string) => Promise<string | undefined>): Step =>
    async () =>
      (await step((await store.read.retention.checkpoint(scan)) ?? '')) !== undefined

  function pseudonymizeRequests(until: number, batchSize: number): Step {
    const before = lowestId('otp', until)
    const cutLinks = createLinkCutter(store, keys, before)
    return resumeScan('requests', async (after) => {
      const rows = await store.read.retention.listRequests(after, before, batchSize)
      const last = rows.at(-1)?.id
      if (last === undefined) return undefined
      const plain = rows.filter(({ phone }) => isPlainPhone(phone))
      const cut = await cutLinks(plain)
      await store.write(async (tx) => {
        await cut(tx)
        for (const { id, developerId, phone } of plain)
          await tx.retention.replaceInRequest(id, derivePseudonym(keys, developerId, phone))
        await tx.retention.setCheckpoint('requests', last)
      })
      return last
    })
  }

  const pseudonymizeEvents = (until: number, batchSize: number) =>
    resumeScan('events', async (after) => {
      const rows = await store.read.retention.listEvents(Number(after), batchSize)
      // Entries before an old one are old too, even if the clock was set back in between.
      const old = rows.slice(0, rows.findLastIndex(({ at }) => at <= until) + 1)
      const last = old.at(-1)?.seq
      if (last === undefined) return undefined
      await store.write(async (tx) => {
        for (const { seq, developerId, phone } of old) {
          if (!isPlainPhone(phone)) continue
          const pseudonym = derivePseudonym(keys, developerId, phone)
          await tx.retention.replaceInEvent(seq, pseudonym, (payload) => redactPayload(payload, pseudonym))
        }
        await tx.retention.setCheckpoint('events', String(last))
      })
      return String(last)
    })

  const clearOldResponses = (until: number, batchSize: number) =>
    resumeScan('answers', async (after) => {
      const last = await store.read.retention.findResponseBatchEnd(after, lowestId('dlv', until), batchSize)
      if (last === undefined) return undefined
      await store.write(async (tx) => {
        await tx.retention.clearResponses(after, last)
        await tx.retention.setCheckpoint('answers', last)
      })
      return last
    })

  /**
   * Scans a table by its keys once a day, where an index over time would cost the calls too much. The checkpoint is the day
   * of the last whole scan, or the last key of one that has not ended.
   *
   * @param step scans a batch after a key, '' at first. Returns its last key; undefined if it was the last batch
   */
  function scanDaily(
    scan: ScanName,
    now: number,
    step: (after: string) => Promise<string | undefined>,
  ): Step {
    let after: string | undefined
    return async () => {
      if (after === undefined) {
        const checkpoint = await store.read.retention.checkpoint(scan)
        if (checkpoint === toScannedDay(now)) return false
        after = checkpoint?.startsWith(scannedDayPrefix) === false ? checkpoint : ''
      }
      const last = await step(after)
      after = last ?? after
      if (last !== undefined) return true
      const scannedDay = toScannedDay(clock.now())
      await store.write((tx) => tx.retention.setCheckpoint(scan, scannedDay))
      return false
    }
  }

  /** Expires the records of phones: calls keep them alive, so their key says nothing about their age. */
  function expirePhones(now: number, phonesUntil: number | undefined, batchSize: number): Step {
    const expire = (record: PhoneRecord) => expirePhone(keys, record, now, phonesUntil)
    return scanDaily('phones', now, async (after) => {
      const rows = await store.read.phones.scan(after === '' ? -1 : Number(after), batchSize)
      const last = String(rows.at(-1)?.key)
      const old = rows.filter(({ record }) => expire(record) !== record)
      if (old.length > 0) {
        await store.write(async (tx) => {
          for (const { hash } of old) {
            // Again, with the row locked: a call may have changed it, or an erasure have deleted it.
            const current = await tx.phones.loadKept(hash)
            if (!current) continue
            const expired = expire(current.record)
            if (expired === undefined) await tx.phones.delete(current)
            else if (expired !== current.record) await tx.phones.save(current, expired)
          }
          await tx.retention.setCheckpoint('phones', last)
        })
      }
      return rows.length === batchSize ? last : undefined
    })
  }

  /** Deletes counts of the guard that no rule uses any more: what a call changes has no index but its key. */
  const deleteUnusedCounts = (now: number, batchSize: number) =>
    scanDaily('guard', now, async (after) => {
      const subjects = await store.read.guard.listKeys(after, batchSize)
      const last = subjects.at(-1)
      if (last === undefined) return undefined
      await store.write(async (tx) => {
        await tx.guard.deleteUnused(after, last, now)
        await tx.retention.setCheckpoint('guard', last)
      })
      return last
    })

  function planSteps(now: number, batchSize: number): Step[] {
    const deletionStep =
      (body: (tx: Pick<Stores, SweptTables>) => Promise<boolean>): Step =>
      () =>
        store.write(body)
    const phones = cutoffFor(settings.phoneDays, now)
    const log = cutoffFor(settings.logDays, now)
    const requests = cutoffFor(settings.requestDays, now)
    const audit = cutoffFor(settings.auditDays, now)
    const ageBasedSteps: Array<Step | false> = [
      log !== undefined && deletionStep((tx) => tx.webhookDeliveries.deleteOldest(log, batchSize)),
      log !== undefined && deletionStep((tx) => tx.events.deleteOldest(log, batchSize)),
      requests !== undefined && deletionStep((tx) => tx.otpRequests.deleteOldest(requests, batchSize)),
      audit !== undefined && deletionStep((tx) => tx.audit.deleteOldest(audit, batchSize)),
      phones !== undefined && pseudonymizeRequests(phones, batchSize),
      phones !== undefined && pseudonymizeEvents(phones, batchSize),
      phones !== undefined && clearOldResponses(phones, batchSize),
      expirePhones(now, phones, batchSize),
    ]
    return [
      deletionStep((tx) => tx.retention.preparePartition(now)),
      deletionStep((tx) => tx.inbox.deleteOldest(now - inboxLifetimeMs, batchSize)),
      deletionStep((tx) => tx.idempotency.deleteOldest(now - idempotencyLifetimeMs, batchSize)),
      deletionStep((tx) => tx.rateLimits.deleteOldest(now - admissionLifetimeMs, batchSize)),
      deletionStep((tx) => tx.messages.deleteOldest(now - messageLifetimeMs, batchSize)),
      deletionStep((tx) => tx.guard.deleteOldDecisions(now, batchSize)),
      deleteUnusedCounts(now, batchSize),
      deletionStep((tx) => deleteExpiredRules(tx, now, batchSize)),
      deletionStep((tx) => tx.analytics.deleteBreakdown(utcDay(now) - breakdownDays, batchSize)),
      deletionStep((tx) => tx.checkBudgets.deleteOldest(now - checkBudgetLifetimeMs, batchSize)),
      deletionStep((tx) => tx.loginAttempts.deleteOldest(staleLoginFailures(now), batchSize)),
      deletionStep((tx) => tx.relayedMessages.deleteOldest(now - relayedLifetimeMs, batchSize)),
      deletionStep((tx) => tx.otpSessions.deleteOldest(now - sessionRetentionMs, batchSize)),
      deletionStep((tx) => tx.refreshTokens.deleteExpired(now, batchSize)),
      ...ageBasedSteps.filter((step) => step !== false),
    ]
  }

  return {
    /**
     * Deletes expired data and pseudonymizes old phone numbers, in batches of one transaction each. It may be
     * interrupted at any time; the next run continues from the checkpoints.
     */
    async purge({ batchSize, yieldToRequests }: PurgeThrottle): Promise<void> {
      for (const step of planSteps(clock.now(), batchSize)) {
        while (await step()) if (!(await yieldToRequests())) return
        if (!(await yieldToRequests())) return
      }
    },
  }
}

const scannedDayPrefix = 'day '

/** The checkpoint of a scan that ended on the UTC day of a time. */
const toScannedDay = (time: number) => `${scannedDayPrefix}${utcDay(time)}`

/** Replaces the phone number in a webhook body, and removes the metadata. */
export function redactPayload(payload: string, phone: string): string {
  // Written by recordEvent.
  const body = JSON.parse(payload) as { data: object }
  return JSON.stringify({ ...body, data: { ...body.data, phone, metadata: null } })
}
