import { hostOrigin, type Actor } from '../model/audit.ts'
import { recordAudit, selfActor } from '../accounts/audit.ts'
import { notFound } from '../model/errors.ts'
import { deleteRules } from '../guard/list-rules.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { cancelRequests, type CancelTables } from '../otp/lifecycle.ts'
import { parsePhone } from '../model/phone.ts'
import { phoneSpellings } from '../../shared/spellings.ts'
import { ownedPhoneHashes, type PhoneRecord } from '../model/phone-record.ts'
import type { Clock } from '../model/clock.ts'
import { erasedPhone, derivePseudonyms } from '../model/pseudonyms.ts'
import { redactPayload } from './retention.ts'
import type { Store } from '../store/store.ts'
import { takeEvidenceBack } from './guard-backfills.ts'
import { recordsOf, recordsOfAll } from './erasable-records.ts'
import { oldPhoneHashes, pseudonymHashes } from '../otp/phones.ts'
import { environments } from '../../shared/otp-values.ts'

/** Number of records from which the phone number was erased. */
export type ErasureResult = { otpRequests: number; logEntries: number; users: number }

type ErasureNeeds = {
  store: Store<
    | CancelTables
    | 'audit'
    | 'checkBudgets'
    | 'developers'
    | 'events'
    | 'guard'
    | 'idempotency'
    | 'listRules'
    | 'otpSessions'
    | 'phones'
    | 'relayedMessages'
    | 'retention'
  >
  clock: Clock
  newId: NewId
  keys: Keys
}

/**
 * Erases a phone number, in all its spellings: deletes its identities, budgets and contexts, cancels its codes, and
 * replaces the number and its pseudonyms in records that stay for statistics. Each page of records is a separate
 * transaction, so a running server is not blocked; an interrupted run can be repeated.
 *
 * @param by.actor the developer whose records are erased; undefined: the operator, the records of all developers
 * @param by.yieldToRequests awaited after each page of records
 * @throws INVALID_PHONE_NUMBER; NOT_FOUND nothing is kept about the phone of the actor
 */
export async function erasePhone(
  needs: ErasureNeeds,
  input: string,
  by: { actor?: Actor; yieldToRequests?: () => Promise<void> } = {},
): Promise<ErasureResult> {
  const { store, clock, newId, keys } = needs
  const { actor, yieldToRequests } = by
  const { phone } = parsePhone(input)
  const records = actor ? recordsOf(store.read, actor.id, clock.now()) : recordsOfAll(store.read)
  const counts = { otpRequests: 0, logEntries: 0, users: 0 }
  const developers = new Set<string>()
  const appIds = new Set<string>()
  const spellings = phoneSpellings(phone)
  const traces = new Map<string, Set<string>>()

  const belongsToSubject = (row: { developerId: string; phone: string | null }) => {
    let ownTraces = traces.get(row.developerId)
    if (!ownTraces) {
      const pseudonyms = spellings.flatMap((spelling) => derivePseudonyms(keys, row.developerId, spelling))
      traces.set(row.developerId, (ownTraces = new Set([...spellings, ...pseudonyms])))
    }
    if (row.phone === null || !ownTraces.has(row.phone)) return false
    if (actor && row.developerId !== actor.id) return false
    developers.add(row.developerId)
    return true
  }

  async function eraseRecords() {
    for (const developerId of await records.developerIds()) {
      const hashes = environments.flatMap((environment) => {
        const owned = { developerId, environment, phone }
        return [...ownedPhoneHashes(keys, owned), ...pseudonymHashes(keys, owned)]
      })
      await store.write(async (tx) => {
        const erased: PhoneRecord[] = []
        for (const hash of hashes) {
          const loaded = await tx.phones.loadKept(hash)
          if (!loaded) continue
          developers.add(developerId)
          if (loaded.record.identity !== null) counts.users++
          await tx.phones.delete(loaded)
          erased.push(loaded.record)
        }
        // Calls lock the rows of phones before those of the guard.
        for (const record of erased) await takeEvidenceBack(tx, keys, record, clock.now())
      })
    }
  }

  async function eraseRequests() {
    for await (const rows of records.requests()) {
      await yieldToRequests?.()
      const matching = rows.filter(belongsToSubject)
      counts.otpRequests += matching.length
      if (matching.length === 0) continue
      for (const { appId } of matching) if (appId !== undefined) appIds.add(appId)
      await store.write(async (tx) => {
        for (const { id } of matching) await tx.retention.replaceInRequest(id, erasedPhone)
        const requestIds = matching.map(({ id }) => id)
        await tx.retention.deleteMessages(requestIds)
        await tx.otpSessions.deleteByRequests(requestIds)
        // Stops pending codes; closed requests are not changed.
        await cancelRequests(tx, newId, requestIds, clock.now())
      })
    }
  }

  async function eraseRelayedMessages() {
    for await (const rows of records.relayedPhones()) {
      await yieldToRequests?.()
      const matching = rows.filter(belongsToSubject)
      if (matching.length === 0) continue
      await store.write(async (tx) => {
        for (const { id } of matching) await tx.relayedMessages.delete(id)
      })
    }
  }

  /** Deletes sessions of the ready page for this phone alone. The others of the phone are deleted with their requests. */
  async function eraseSessions() {
    for await (const rows of records.sessionPhones()) {
      await yieldToRequests?.()
      const matching = rows.filter(belongsToSubject)
      if (matching.length === 0) continue
      await store.write(async (tx) => {
        for (const { id } of matching) await tx.otpSessions.delete(id)
      })
    }
  }

  /** Deletes rules that name the phone, whole or as a prefix with all its digits. */
  async function eraseRules() {
    for (const developerId of await records.developerIds()) {
      const hasDeleted = await store.write((tx) =>
        deleteRules(tx, developerId, ({ value }) => spellings.includes(value)),
      )
      if (hasDeleted) developers.add(developerId)
    }
  }

  /** @returns the sequence numbers of the erased entries, by which deliveries refer to them */
  async function eraseEvents(): Promise<Set<number>> {
    const eventSeqs = new Set<number>()
    for await (const rows of records.events()) {
      await yieldToRequests?.()
      const matching = rows.filter(belongsToSubject)
      if (matching.length === 0) continue
      await store.write(async (tx) => {
        for (const { seq } of matching) {
          await tx.retention.replaceInEvent(seq, erasedPhone, (payload) =>
            redactPayload(payload, erasedPhone),
          )
        }
      })
      for (const { seq } of matching) eventSeqs.add(seq)
    }
    counts.logEntries = eventSeqs.size
    return eventSeqs
  }

  async function eraseResponses(events: Set<number>) {
    if (events.size === 0) return
    for await (const rows of records.deliveries(appIds)) {
      await yieldToRequests?.()
      const matching = rows.filter(({ eventSeq }) => events.has(eventSeq))
      if (matching.length === 0) continue
      await store.write(async (tx) => {
        for (const { id } of matching) await tx.retention.clearResponses(id, id)
      })
    }
  }

  async function eraseIdempotencyResults() {
    for await (const rows of records.idempotencyResults(appIds)) {
      await yieldToRequests?.()
      const matching = rows.filter(({ answer }) =>
        spellings.some((spelling) => answer?.includes(`"${spelling}"`)),
      )
      if (matching.length === 0) continue
      await store.write(async (tx) => {
        for (const row of matching) await tx.retention.deleteIdempotencyResult(row)
      })
    }
  }

  // The order matters: no step may re-create what an earlier one erased. Canceled codes create no identities.
  await eraseRequests()
  await eraseRelayedMessages()
  await eraseSessions()
  await eraseRules()
  await eraseRecords()
  await eraseResponses(await eraseEvents())
  await eraseIdempotencyResults()
  await store.write(async (tx) => {
    const oldHashes = oldPhoneHashes(keys, phone)
    if (actor) {
      if ((await tx.checkBudgets.delete({ developerId: actor.id, phoneHashes: oldHashes })) > 0)
        developers.add(actor.id)
    } else await tx.checkBudgets.deleteByPhone(oldHashes)
    for (const developerId of developers.size > 0 || actor ? [...developers].toSorted() : [null]) {
      const auditActor = actor ? selfActor(actor) : { developerId, actorId: null, origin: hostOrigin }
      await recordAudit(tx, newId, auditActor, { action: 'phone.erased' }, clock.now())
    }
  })
  if (actor && developers.size === 0) throw notFound('phone')
  return counts
}
