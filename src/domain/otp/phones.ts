import { stricter } from '../limits/check-budget.ts'
import { phoneSpellings } from '../model/canonical-phone.ts'
import { upgradeContext } from '../model/context.ts'
import { hashPhoneVersions, type Keys } from '../model/keys.ts'
import {
  emptyRecord,
  hashSubscriber,
  subscriberHashes,
  type Lane,
  type PhoneRecord,
  type Subscriber,
} from '../model/phone-record.ts'
import { isVirtualPhone } from '../model/phone.ts'
import { derivePseudonyms } from '../model/pseudonyms.ts'
import type { OtpRequest } from '../model/request.ts'
import type { LoadedPhone } from '../store/phones.ts'
import type { Stores } from '../store/store.ts'

/** Test applications and virtual numbers send nothing that costs or annoys: they have no budgets. */
export const hasPhoneBudgets = ({ environment, phone }: Pick<Subscriber, 'environment' | 'phone'>): boolean =>
  environment === 'live' && !isVirtualPhone(phone)

/** Lane of the send that made a request. Those that 0.1.0 made count as a stranger's. */
export const laneOf = ({ lane }: Pick<OtpRequest, 'lane'>): Lane => lane ?? 'stranger'

type PhoneKeys = Pick<Keys, 'context' | 'phone' | 'pseudonym'>

/**
 * Loads the record of a phone, and locks it until the transaction ends. The row lock comes after the application's
 * (lock order). A phone that is seen for the first time since the upgrade takes over what 0.1.0 knew about it, and one
 * that is seen for the first time since its key was replaced takes over its record.
 */
export async function loadPhone(
  tx: Pick<Stores, 'checkBudgets' | 'phones'>,
  keys: PhoneKeys,
  subscriber: Subscriber & { country: string | null },
): Promise<LoadedPhone> {
  const empty = emptyRecord(subscriber, subscriber.country)
  const loaded = await tx.phones.load(hashSubscriber(keys, subscriber), empty)
  let record = upgradeContexts(keys, loaded.record)
  if (loaded.isNew) record = await takeOtherRecord(tx, keys, subscriber, record)
  if (record.lastSentAt === 0) record = await takeCheckBudgets(tx, keys, subscriber, record)
  // Saved now: the rest of the call may refuse, and what was taken is deleted elsewhere.
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
  for (const hash of await otherHashes(tx, keys, subscriber)) {
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
  for (const hash of await otherHashes(tx, keys, subscriber)) {
    if (!(await tx.phones.find(hash))) continue
    const other = await tx.phones.load(hash, record)
    await tx.phones.delete(other)
    return upgradeContexts(keys, other.record)
  }
  return record
}

/** Lists the hashes, but for the newest, under which the record of a phone may be. Almost always there is none. */
const otherHashes = async (tx: Pick<Stores, 'phones'>, keys: PhoneKeys, subscriber: Subscriber) => [
  ...(keys.phone.length > 1 ? subscriberHashes(keys, subscriber).slice(1) : []),
  ...((await tx.phones.hasPseudonymSlots()) ? pseudonymHashes(keys, subscriber) : []),
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

/** Hash under which 0.1.0 kept the budgets of a number: that of the key's first version. */
export const oldPhoneHash = (keys: PhoneKeys, phone: string): string =>
  hashPhoneVersions(keys, phone).at(-1) ?? ''

/** Moves the strictest budget of the developer's applications into the lane of strangers: a locked phone stays locked. */
async function takeCheckBudgets(
  tx: Pick<Stores, 'checkBudgets'>,
  keys: PhoneKeys,
  { developerId, environment, phone }: Subscriber,
  record: PhoneRecord,
): Promise<PhoneRecord> {
  if (environment === 'test') return record
  const hashes = phoneSpellings(phone).map((spelling) => oldPhoneHash(keys, spelling))
  const budgets = await tx.checkBudgets.take(developerId, hashes)
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
