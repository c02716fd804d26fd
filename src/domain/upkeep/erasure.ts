import { fromHost, recordAudit } from '../accounts/audit.ts'
import type { NewId } from '../model/ids.ts'
import { hashPhone, type Keys } from '../model/keys.ts'
import { endRequest } from '../otp/lifecycle.ts'
import { parsePhone } from '../model/phone.ts'
import type { Clock } from '../model/clock.ts'
import { erasedPhone, pseudonymOf } from '../model/pseudonyms.ts'
import { withoutPerson } from './retention.ts'
import type { Store } from '../store/store.ts'
import { forgetCounts, listCounted } from './unlock.ts'

/** How many records a person was taken out of. */
export type Erased = { otpRequests: number; logEntries: number; users: number }

const pageRows = 500

/**
 * Forgets a phone number, with every developer: its identities go, its codes are canceled, and in what stays for the
 * counts there is neither the number nor a pseudonym of it any more. Each page of records is a transaction of its own,
 * so that a server beside it goes on; if it is cut short, another run does the rest.
 *
 * @throws INVALID_PHONE_NUMBER
 */
export async function erasePhone(
  needs: { store: Store; clock: Clock; newId: NewId; keys: Keys },
  input: string,
): Promise<Erased> {
  const { store, clock, newId, keys } = needs
  const { phone } = parsePhone(input)
  const erased = { otpRequests: 0, logEntries: 0, users: 0 }
  const developers = new Set<string>()
  const pseudonyms = new Map<string, string>()

  const isThem = (row: { developerId: string; phone: string | null }) => {
    let pseudonym = pseudonyms.get(row.developerId)
    if (!pseudonym) pseudonyms.set(row.developerId, (pseudonym = pseudonymOf(keys, row.developerId, phone)))
    if (row.phone !== phone && row.phone !== pseudonym) return false
    developers.add(row.developerId)
    return true
  }

  async function eraseIdentities() {
    for await (const rows of pages(store.read.retention.listIdentities, (row) => row.id, '')) {
      const theirs = rows.filter(isThem)
      erased.users += theirs.length
      if (theirs.length === 0) continue
      await store.write(async (tx) => {
        for (const { id } of theirs) await tx.retention.deleteIdentity(id)
      })
    }
  }

  async function eraseRequests() {
    const list = (after: string, limit: number) => store.read.retention.listRequests(after, undefined, limit)
    for await (const rows of pages(list, (row) => row.id, '')) {
      const theirs = rows.filter(isThem)
      erased.otpRequests += theirs.length
      if (theirs.length === 0) continue
      await store.write(async (tx) => {
        for (const { id } of theirs) await tx.retention.replaceInRequest(id, erasedPhone)
        await tx.retention.deleteMessages(theirs.map(({ id }) => id))
        // Nobody is sent a code any more; of those that have ended this changes nothing.
        for (const { id } of theirs) await endRequest(tx, newId, id, { status: 'canceled' }, clock.now())
      })
    }
  }

  /** @returns the numbers of the entries, which deliveries name */
  async function eraseEvents(): Promise<Set<number>> {
    const numbers = new Set<number>()
    for await (const rows of pages(store.read.retention.listEvents, (row) => row.seq, 0)) {
      const theirs = rows.filter(isThem)
      if (theirs.length === 0) continue
      await store.write(async (tx) => {
        for (const { seq, payload } of theirs) {
          await tx.retention.replaceInEvent(seq, erasedPhone, withoutPerson(payload, erasedPhone))
        }
      })
      for (const { seq } of theirs) numbers.add(seq)
    }
    erased.logEntries = numbers.size
    return numbers
  }

  async function eraseAnswers(events: Set<number>) {
    if (events.size === 0) return
    for await (const rows of pages(store.read.retention.listDeliveries, (row) => row.id, '')) {
      const theirs = rows.filter(({ eventSeq }) => events.has(eventSeq))
      if (theirs.length === 0) continue
      await store.write(async (tx) => {
        for (const { id } of theirs) await tx.retention.clearAnswers(id, id)
      })
    }
  }

  // Behind each step nothing makes anew what it has taken away: a code that is canceled verifies nobody any more.
  await eraseRequests()
  await eraseIdentities()
  await eraseAnswers(await eraseEvents())
  const phoneHash = hashPhone(keys, phone)
  const subjects = await listCounted(store, phoneHash)
  await store.write(async (tx) => {
    await forgetCounts(tx, phoneHash, subjects)
    await tx.retention.deleteIdempotencyAnswers(phone)
    const whose = developers.size > 0 ? [...developers].toSorted() : [null]
    for (const developerId of whose) {
      const operator = { developerId, actorId: null, origin: fromHost }
      await recordAudit(tx, newId, operator, { action: 'phone.erased' }, clock.now())
    }
  })
  return erased
}

/** All rows, some at a time, in the order of their keys. */
async function* pages<T, Key>(
  list: (after: Key, limit: number) => Promise<T[]>,
  keyOf: (row: T) => Key,
  first: Key,
): AsyncGenerator<T[]> {
  for (let after = first; ;) {
    const rows = await list(after, pageRows)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    after = keyOf(last)
  }
}
