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
import type { Store, Stores } from '../store/store.ts'
import { takeEvidenceBack } from './guard-backfills.ts'
import { recordsOf, recordsOfAll } from './erasable-records.ts'
import { oldPhoneHashes, pseudonymHashes } from '../otp/phones.ts'
import { environments } from '../../shared/otp-values.ts'

/** Number of records from which the phone number was erased. */
export type ErasureResult = { otpRequests: number; logEntries: number; users: number }

type ErasedTables =
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

type ErasureNeeds = {
  store: Store<ErasedTables>
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

  /** Changes the matching rows, those of a page in one transaction. @param change may be repeated */
  async function changeMatching<Row>(
    pages: AsyncIterable<Row[]>,
    matches: (row: Row) => boolean,
    change: (tx: Pick<Stores, ErasedTables>, matching: readonly Row[]) => Promise<void>,
  ) {
    for await (const rows of pages) {
      await yieldToRequests?.()
      const matching = rows.filter(matches)
      if (matching.length > 0) await store.write((tx) => change(tx, matching))
    }
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
    const erased = new Set<string>()
    await changeMatching(records.requests(), belongsToSubject, async (tx, requests) => {
      for (const { id, appId } of requests) {
        erased.add(id)
        if (appId !== undefined) appIds.add(appId)
        await tx.retention.replaceInRequest(id, erasedPhone)
      }
      const requestIds = requests.map(({ id }) => id)
      await tx.retention.deleteMessages(requestIds)
      await tx.otpSessions.deleteByRequests(requestIds)
      // Stops pending codes; closed requests are not changed.
      await cancelRequests(tx, newId, requestIds, clock.now())
    })
    counts.otpRequests = erased.size
  }

  const eraseRelayedMessages = () =>
    changeMatching(records.relayedPhones(), belongsToSubject, async (tx, messages) => {
      for (const { id } of messages) await tx.relayedMessages.delete(id)
    })

  /** Deletes sessions of the ready page for this phone alone. The others of the phone are deleted with their requests. */
  const eraseSessions = () =>
    changeMatching(records.sessionPhones(), belongsToSubject, async (tx, sessions) => {
      for (const { id } of sessions) await tx.otpSessions.delete(id)
    })

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
    await changeMatching(records.events(), belongsToSubject, async (tx, events) => {
      for (const { seq } of events) {
        eventSeqs.add(seq)
        await tx.retention.replaceInEvent(seq, erasedPhone, (payload) => redactPayload(payload, erasedPhone))
      }
    })
    counts.logEntries = eventSeqs.size
    return eventSeqs
  }

  async function eraseResponses(events: Set<number>) {
    if (events.size === 0) return
    const isOfErased = ({ eventSeq }: { eventSeq: number }) => events.has(eventSeq)
    await changeMatching(records.deliveries(appIds), isOfErased, async (tx, deliveries) => {
      for (const { id } of deliveries) await tx.retention.clearResponses(id, id)
    })
  }

  const eraseIdempotencyResults = () =>
    changeMatching(
      records.idempotencyResults(appIds),
      ({ answer }) => spellings.some((spelling) => answer?.includes(`"${spelling}"`)),
      async (tx, results) => {
        for (const row of results) await tx.retention.deleteIdempotencyResult(row)
      },
    )

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
