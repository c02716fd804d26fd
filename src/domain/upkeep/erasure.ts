import { hostOrigin } from '../model/audit.ts'
import { recordAudit } from '../accounts/audit.ts'
import type { NewId } from '../model/ids.ts'
import { hashPhone, type Keys } from '../model/keys.ts'
import { closeAndPublish, type LifecycleTables } from '../otp/lifecycle.ts'
import { parsePhone } from '../model/phone.ts'
import type { Clock } from '../model/clock.ts'
import { erasedPhone, derivePseudonyms } from '../model/pseudonyms.ts'
import { redactPayload } from './retention.ts'
import type { Store } from '../store/store.ts'
import { resetLimiters, listLimiterSubjects } from './unlock.ts'

/** Number of records from which the phone number was erased. */
export type ErasureResult = { otpRequests: number; logEntries: number; users: number }

const pageRows = 500

/**
 * Erases a phone number for all developers: deletes its identities, cancels its codes, and replaces the number and
 * its pseudonyms in records that stay for statistics. Each page of records is a separate transaction, so a running
 * server is not blocked; an interrupted run can be repeated.
 *
 * @throws INVALID_PHONE_NUMBER
 */
export async function erasePhone(
  needs: {
    store: Store<LifecycleTables | 'audit' | 'checkBudgets' | 'rateLimits' | 'retention'>
    clock: Clock
    newId: NewId
    keys: Keys
  },
  input: string,
): Promise<ErasureResult> {
  const { store, clock, newId, keys } = needs
  const { phone } = parsePhone(input)
  const counts = { otpRequests: 0, logEntries: 0, users: 0 }
  const developers = new Set<string>()
  /** Pseudonyms of each developer in all versions of the key: rows may not be brought to the newest yet. */
  const pseudonyms = new Map<string, string[]>()

  const belongsToSubject = (row: { developerId: string; phone: string | null }) => {
    let known = pseudonyms.get(row.developerId)
    if (!known) pseudonyms.set(row.developerId, (known = derivePseudonyms(keys, row.developerId, phone)))
    if (row.phone === null || (row.phone !== phone && !known.includes(row.phone))) return false
    developers.add(row.developerId)
    return true
  }

  async function eraseIdentities() {
    for await (const rows of scanPages(store.read.retention.listIdentities, (row) => row.id, '')) {
      const matching = rows.filter(belongsToSubject)
      counts.users += matching.length
      if (matching.length === 0) continue
      await store.write(async (tx) => {
        for (const { id } of matching) await tx.retention.deleteIdentity(id)
      })
    }
  }

  async function eraseRequests() {
    const list = (after: string, limit: number) => store.read.retention.listRequests(after, undefined, limit)
    for await (const rows of scanPages(list, (row) => row.id, '')) {
      const matching = rows.filter(belongsToSubject)
      counts.otpRequests += matching.length
      if (matching.length === 0) continue
      await store.write(async (tx) => {
        for (const { id } of matching) await tx.retention.replaceInRequest(id, erasedPhone)
        await tx.retention.deleteMessages(matching.map(({ id }) => id))
        // Stops pending codes; closed requests are not changed.
        for (const { id } of matching)
          await closeAndPublish(tx, newId, id, { status: 'canceled' }, clock.now())
      })
    }
  }

  /** @returns the sequence numbers of the erased entries, by which deliveries refer to them */
  async function eraseEvents(): Promise<Set<number>> {
    const eventSeqs = new Set<number>()
    for await (const rows of scanPages(store.read.retention.listEvents, (row) => row.seq, 0)) {
      const matching = rows.filter(belongsToSubject)
      if (matching.length === 0) continue
      await store.write(async (tx) => {
        for (const { seq, payload } of matching) {
          await tx.retention.replaceInEvent(seq, erasedPhone, redactPayload(payload, erasedPhone))
        }
      })
      for (const { seq } of matching) eventSeqs.add(seq)
    }
    counts.logEntries = eventSeqs.size
    return eventSeqs
  }

  async function eraseResponses(events: Set<number>) {
    if (events.size === 0) return
    for await (const rows of scanPages(store.read.retention.listDeliveries, (row) => row.id, '')) {
      const matching = rows.filter(({ eventSeq }) => events.has(eventSeq))
      if (matching.length === 0) continue
      await store.write(async (tx) => {
        for (const { id } of matching) await tx.retention.clearResponses(id, id)
      })
    }
  }

  // The order matters: no step may re-create what an earlier one erased. Canceled codes create no identities.
  await eraseRequests()
  await eraseIdentities()
  await eraseResponses(await eraseEvents())
  const phoneHash = hashPhone(keys, phone)
  const subjects = await listLimiterSubjects(store, phoneHash)
  await store.write(async (tx) => {
    await resetLimiters(tx, phoneHash, subjects)
    await tx.retention.deleteIdempotencyResults(phone)
    const developerIds = developers.size > 0 ? [...developers].toSorted() : [null]
    for (const developerId of developerIds) {
      const operator = { developerId, actorId: null, origin: hostOrigin }
      await recordAudit(tx, newId, operator, { action: 'phone.erased' }, clock.now())
    }
  })
  return counts
}

/** Yields all rows in pages, in key order (keyset pagination). */
async function* scanPages<T, Key>(
  list: (after: Key, limit: number) => Promise<T[]>,
  getKey: (row: T) => Key,
  start: Key,
): AsyncGenerator<T[]> {
  for (let after = start; ;) {
    const rows = await list(after, pageRows)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    after = getKey(last)
  }
}
