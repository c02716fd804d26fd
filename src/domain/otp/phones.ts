import { stricter } from '../limits/check-budget.ts'
import { phoneSpellings } from '../model/canonical-phone.ts'
import { upgradeContext } from '../model/context.ts'
import { indexHashes, type Keys } from '../model/keys.ts'
import {
  emptyRecord,
  hashSubscriber,
  laneFor,
  subscriberHashes,
  type Lane,
  type PhoneRecord,
  type Subscriber,
} from '../model/phone-record.ts'
import { isVirtualPhone } from '../model/phone.ts'
import { derivePseudonyms } from '../model/pseudonyms.ts'
import type { OtpRequest } from '../model/request.ts'
import type { LoadedPhone } from '../store/phones.ts'
import type { Needs, Rows } from '../store/operation.ts'
import type { Stores } from '../store/store.ts'

/** Test applications and virtual numbers send nothing that costs or annoys: they have no budgets. */
export const hasPhoneBudgets = ({ environment, phone }: Pick<Subscriber, 'environment' | 'phone'>): boolean =>
  environment === 'live' && !isVirtualPhone(phone)

/**
 * Lane of the send that made a request. Those that 0.1.0 made count as a stranger's. The request keeps only that it was a
 * known one; the record tells whether its device was.
 */
export const laneOf = (
  record: PhoneRecord,
  { lane, ...request }: Pick<OtpRequest, 'lane' | 'clientIp' | 'contexts' | 'createdAt'>,
): Lane =>
  lane !== 'known'
    ? 'stranger'
    : laneFor(record, request, request.createdAt) === 'device'
      ? 'device'
      : 'network'

type PhoneKeys = Pick<Keys, 'context' | 'phone' | 'pseudonym'>

/** Thrown if data of a phone is in another place, from which `loadPhone` moves it. */
export class MisplacedPhoneError extends Error {
  override readonly name = 'MisplacedPhoneError'
  readonly subscriber: PhoneToLoad

  constructor(subscriber: PhoneToLoad) {
    super('what is kept about a phone is elsewhere')
    this.subscriber = subscriber
  }
}

type PhoneToLoad = Subscriber & { country: string | null }

/**
 * Reads the record of a phone; an empty one if there is none.
 *
 * @throws MisplacedPhoneError its record is under another hash, or 0.1.0 may have kept budgets for it
 */
export function readPhone(rows: PhoneRows, keys: PhoneKeys, subscriber: PhoneToLoad): LoadedPhone {
  const loaded = readMovedPhone(rows, keys, subscriber)
  if (isElsewhere(rows, keys, subscriber, loaded)) throw new MisplacedPhoneError(subscriber)
  return loaded
}

/** Tells whether something is kept about a phone in a place from which `loadPhone` moves it. */
function isElsewhere(
  rows: PhoneRows,
  keys: PhoneKeys,
  subscriber: PhoneToLoad,
  { record, isNew }: LoadedPhone,
): boolean {
  if (record.lastSentAt === 0 && rows.hasCheckBudgets(() => oldPhoneHashes(keys, subscriber.phone)))
    return true
  return isNew && otherHashes(rows.hasPseudonymSlots(), keys, subscriber).some(rows.hasPhone)
}

/** Reads the record of a phone that `loadPhone` has just put in its place. */
export function readMovedPhone(
  rows: Pick<Rows, 'phone'>,
  keys: PhoneKeys,
  subscriber: PhoneToLoad,
): LoadedPhone {
  const loaded = rows.phone(hashSubscriber(keys, subscriber), emptyRecord(subscriber, subscriber.country))
  return { ...loaded, record: upgradeContexts(keys, loaded.record) }
}

type PhoneRows = Pick<Rows, 'phone' | 'hasPhone' | 'hasPseudonymSlots' | 'hasCheckBudgets'>

/** Names the other places in which `readPhone` looks, once it is known that it does. */
export function otherPlaces(rows: PhoneRows, keys: PhoneKeys, subscriber: PhoneToLoad): Needs {
  const { record, isNew } = readMovedPhone(rows, keys, subscriber)
  return {
    ...(record.lastSentAt === 0 && { oldPhones: oldPhoneHashes(keys, subscriber.phone) }),
    ...(isNew && { otherPhones: otherHashes(rows.hasPseudonymSlots(), keys, subscriber) }),
  }
}

/**
 * Loads the record of a phone in an ordinary transaction, and locks it until the transaction ends. A phone that is seen
 * for the first time since the upgrade takes over what 0.1.0 knew about it, and one that is seen for the first time since
 * its key was replaced takes over its record.
 */
export async function loadPhone(
  tx: Pick<Stores, 'checkBudgets' | 'phones'>,
  keys: PhoneKeys,
  subscriber: PhoneToLoad,
): Promise<LoadedPhone> {
  const empty = emptyRecord(subscriber, subscriber.country)
  const loaded = await tx.phones.load(hashSubscriber(keys, subscriber), empty)
  let record = upgradeContexts(keys, loaded.record)
  if (loaded.isNew) record = await takeOtherRecord(tx, keys, subscriber, record)
  if (record.lastSentAt === 0) record = await takeCheckBudgets(tx, keys, subscriber, record)
  // Saved now: what was taken is deleted elsewhere.
  if (record !== loaded.record) await tx.phones.save(loaded, record)
  return { ...loaded, record }
}

/** Finds the record of a phone without locking it. */
export async function findPhone(
  tx: Pick<Stores, 'phones'>,
  keys: PhoneKeys,
  subscriber: Subscriber,
): Promise<{ hash: string; record: PhoneRecord } | undefined> {
  const newest = hashSubscriber(keys, subscriber)
  const found = await tx.phones.find(newest)
  if (found) return { hash: newest, record: found }
  for (const hash of otherHashes(await tx.phones.hasPseudonymSlots(), keys, subscriber)) {
    const record = await tx.phones.find(hash)
    if (record) return { hash, record }
  }
  return undefined
}

/** Takes over the record that a phone has under another hash. */
async function takeOtherRecord(
  tx: Pick<Stores, 'phones'>,
  keys: PhoneKeys,
  subscriber: Subscriber,
  record: PhoneRecord,
): Promise<PhoneRecord> {
  for (const hash of otherHashes(await tx.phones.hasPseudonymSlots(), keys, subscriber)) {
    if (!(await tx.phones.find(hash))) continue
    const other = await tx.phones.load(hash, record)
    await tx.phones.delete(other)
    return upgradeContexts(keys, other.record)
  }
  return record
}

/** Lists the hashes, but for the newest, under which the record of a phone may be. Almost always there is none. */
const otherHashes = (hasPseudonymSlots: boolean, keys: PhoneKeys, subscriber: Subscriber): string[] => [
  ...(keys.phone.length > 1 ? subscriberHashes(keys, subscriber).slice(1) : []),
  ...(hasPseudonymSlots ? pseudonymHashes(keys, subscriber) : []),
]

/**
 * Lists the hashes of the records that identities of 0.1.0 got whose number was only a pseudonym: they are found when the
 * number comes back. They are made of the pseudonym's first version.
 */
export const pseudonymHashes = (keys: PhoneKeys, subscriber: Subscriber): string[] =>
  phoneSpellings(subscriber.phone).flatMap((spelling) => {
    const pseudonym = derivePseudonyms(keys, subscriber.developerId, spelling).at(-1) ?? ''
    return subscriberHashes(keys, { ...subscriber, phone: pseudonym })
  })

/** Brings the contexts to the newest version of their key; the same object if there is one version only. */
const upgradeContexts = (keys: PhoneKeys, record: PhoneRecord): PhoneRecord =>
  keys.context.length === 1 || record.contexts.length === 0
    ? record
    : {
        ...record,
        contexts: record.contexts.map((one) => ({ ...one, hash: upgradeContext(keys, one.hash) })),
      }

/** Hashes under which 0.1.0 kept the budgets of a number, in all spellings: those of the key's first version. */
export const oldPhoneHashes = (keys: PhoneKeys, phone: string): string[] =>
  phoneSpellings(phone).map((spelling) => indexHashes(keys.phone, spelling).at(-1) ?? '')

/** Moves the strictest budget of the developer's applications into the lane of strangers: a locked phone stays locked. */
async function takeCheckBudgets(
  tx: Pick<Stores, 'checkBudgets'>,
  keys: PhoneKeys,
  { developerId, environment, phone }: Subscriber,
  record: PhoneRecord,
): Promise<PhoneRecord> {
  if (environment === 'test') return record
  const budgets = await tx.checkBudgets.take(developerId, oldPhoneHashes(keys, phone))
  if (budgets.length === 0) return record
  const { stranger } = record.lanes
  const checks = budgets.reduce(stricter, stranger.checks)
  return { ...record, lanes: { ...record.lanes, stranger: { ...stranger, checks } } }
}

/** Puts a request at the head of the phone's list. The number stays the one that was verified, if any was. */
export const withRequest = (record: PhoneRecord, { id, phone, country }: OtpRequest): PhoneRecord => ({
  ...record,
  ...(record.identity === null && { phone, country }),
  newestRequest: id,
})
