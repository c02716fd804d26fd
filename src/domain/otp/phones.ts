import { stricter } from '../limits/check-budget.ts'
import type { CallingApplication } from '../model/application.ts'
import { upgradeContext } from '../model/context.ts'
import { indexHashes, type Keys } from '../model/keys.ts'
import {
  hashOwnedPhone,
  missingPhone,
  trustOfCall,
  ownedPhoneHashes,
  type CheckBudget,
  type TrustLevel,
  type PhoneRecord,
  type LocatedPhone,
  type OwnedPhone,
} from '../model/phone-record.ts'
import { isVirtualPhone, tryParsePhone, type Phone } from '../model/phone.ts'
import { phoneSpellings } from '../../shared/spellings.ts'
import { parseTypedPhone } from '../model/typed-phone.ts'
import { derivePseudonyms, unreadablePhone } from '../model/pseudonyms.ts'
import type { OtpRequest } from '../model/request.ts'
import type { LoadedPhone } from '../store/phones.ts'
import type { NamedRows, Rows } from '../store/operation.ts'
import type { Store, Stores } from '../store/store.ts'

/** A phone number as a call has it, and the country that a number without country code is of. */
export type TypedPhone = { phone: string; country?: string | undefined }

/**
 * Reads the phone number of a call: in E.164, or as it is written in the country that the call names.
 *
 * @returns undefined if it may be a number of the application's own country: see `readNationalPhone`
 * @throws INVALID_PHONE_NUMBER; INVALID_ARGUMENT for an unknown country
 */
export const tryReadPhone = ({ phone, country }: TypedPhone): Phone | undefined =>
  tryParsePhone(phone) ?? (country === undefined ? undefined : parseTypedPhone(phone, country))

/** Reads a phone number as it is written in the country of the application. @throws INVALID_PHONE_NUMBER */
export async function readNationalPhone(
  { store }: { store: Store<'applications'> },
  { id, developerId }: Pick<CallingApplication, 'id' | 'developerId'>,
  { phone }: TypedPhone,
): Promise<Phone> {
  const application = await store.read.applications.find(developerId, id)
  return parseTypedPhone(phone, application?.defaultCountry ?? undefined)
}

/** Test applications and virtual numbers send nothing that costs or annoys: they have no budgets. */
export const hasPhoneBudgets = ({ environment, phone }: Pick<OwnedPhone, 'environment' | 'phone'>): boolean =>
  environment === 'live' && !isVirtualPhone(phone)

/**
 * Returns the trust level of the send that made a request; a stranger's if 0.1.0 made it. The request keeps only that its
 * sender was known; the record tells whether the device was.
 */
export const trustOfRequest = (
  record: PhoneRecord,
  request: Pick<OtpRequest, 'startedBy' | 'clientIp' | 'contexts' | 'createdAt'>,
): TrustLevel =>
  request.startedBy !== 'known'
    ? 'stranger'
    : trustOfCall(record, request, request.createdAt) === 'device'
      ? 'device'
      : 'network'

type PhoneKeys = Pick<Keys, 'context' | 'phone' | 'pseudonym'>

type PhoneRows = Pick<Rows, 'phone' | 'hasPseudonymRecords' | 'oldBudgets'>

/**
 * Reads the record of a phone; an empty one if there is none. A phone that is seen for the first time since the upgrade
 * takes over what 0.1.0 knew about it, and one that is seen for the first time since its key was replaced takes over its
 * record: both when the record is saved.
 */
export function readPhone(rows: PhoneRows, keys: PhoneKeys, owned: LocatedPhone): LoadedPhone {
  const loaded = rows.phone(hashOwnedPhone(keys, owned), owned)
  const mayBeElsewhere = loaded.isNew && (keys.phone.length > 1 || rows.hasPseudonymRecords())
  const other = mayBeElsewhere ? findOther(rows, keys, owned) : undefined
  const found = other?.record ?? loaded.record
  const record = keys.context.length === 1 ? found : upgradeContexts(keys, found)
  const mayHaveBudgets = record.lastSentAt === 0 && !loaded.takes && owned.environment === 'live'
  const budgets = mayHaveBudgets ? rows.oldBudgets(() => oldBudgetsOf(keys, owned)) : []
  if (!other && budgets.length === 0) return record === loaded.record ? loaded : { ...loaded, record }
  return {
    ...loaded,
    record: withOldBudgets(record, budgets),
    takes: { handle: other, budgets: budgets.length > 0 ? oldBudgetsOf(keys, owned) : undefined },
  }
}

/** Reads the record of the phone of a request, or of a relayed message. @throws Error the number cannot be decrypted */
export function readRequestPhone(
  rows: PhoneRows,
  keys: PhoneKeys,
  request: LocatedPhone & Pick<OtpRequest, 'id'>,
): LoadedPhone {
  if (request.phone === unreadablePhone)
    // A budget, an identity or a message would be those of another number.
    throw new Error(`the phone number of ${request.id} cannot be decrypted`)
  return readPhone(rows, keys, request)
}

/** Names what `readPhone` reads. */
export const namePhoneRows = (
  rows: Pick<Rows, 'hasPseudonymRecords'>,
  keys: PhoneKeys,
  owned: OwnedPhone,
): NamedRows => ({
  phone: hashOwnedPhone(keys, owned),
  otherPhones: otherHashes(rows.hasPseudonymRecords(), keys, owned),
  oldBudgets: () => oldBudgetsOf(keys, owned),
})

/** Lists the hashes under which the record of a phone may be, the newest first. */
export const phoneHashes = (
  rows: Pick<Rows, 'hasPseudonymRecords'>,
  keys: PhoneKeys,
  owned: OwnedPhone,
): string[] => [hashOwnedPhone(keys, owned), ...otherHashes(rows.hasPseudonymRecords(), keys, owned)]

/** Finds the record that a phone has under another hash. */
function findOther(rows: PhoneRows, keys: PhoneKeys, owned: LocatedPhone) {
  for (const hash of otherHashes(rows.hasPseudonymRecords(), keys, owned)) {
    const other = rows.phone(hash, owned)
    if (!other.isNew) return other
  }
  return undefined
}

/** Loads the record of a phone as `readPhone` in an ordinary transaction, and locks it until the transaction ends. */
export async function loadPhone(
  tx: Pick<Stores, 'checkBudgets' | 'phones'>,
  keys: PhoneKeys,
  owned: LocatedPhone,
): Promise<LoadedPhone> {
  const hasPseudonymRecords = await tx.phones.hasPseudonymRecords()
  const loaded = new Map<string, LoadedPhone>()
  for (const hash of phoneHashes({ hasPseudonymRecords: () => hasPseudonymRecords }, keys, owned)) {
    if (loaded.size === 0 || (await tx.phones.find(hash))) loaded.set(hash, await tx.phones.load(hash, owned))
  }
  const budgets = await tx.checkBudgets.list(oldBudgetsOf(keys, owned))
  const rows: PhoneRows = {
    phone: (hash) => loaded.get(hash) ?? missingPhone(hash, owned),
    hasPseudonymRecords: () => hasPseudonymRecords,
    oldBudgets: () => budgets,
  }
  const { takes, ...phone } = readPhone(rows, keys, owned)
  if (!takes) return phone
  if (takes.handle) await tx.phones.delete(takes.handle)
  if (takes.budgets) await tx.checkBudgets.delete(takes.budgets)
  await tx.phones.save(phone, phone.record)
  return phone
}

/** Finds the record of a phone without locking it. */
export async function findPhone(
  tx: Pick<Stores, 'phones'>,
  keys: PhoneKeys,
  owned: OwnedPhone,
): Promise<{ hash: string; record: PhoneRecord } | undefined> {
  const newest = hashOwnedPhone(keys, owned)
  const found = await tx.phones.find(newest)
  if (found) return { hash: newest, record: found }
  for (const hash of otherHashes(await tx.phones.hasPseudonymRecords(), keys, owned)) {
    const record = await tx.phones.find(hash)
    if (record) return { hash, record }
  }
  return undefined
}

/** Lists the hashes, but for the newest, under which the record of a phone may be. Almost always there is none. */
const otherHashes = (hasPseudonymRecords: boolean, keys: PhoneKeys, owned: OwnedPhone): string[] => [
  ...(keys.phone.length > 1 ? ownedPhoneHashes(keys, owned).slice(1) : []),
  ...(hasPseudonymRecords ? pseudonymHashes(keys, owned) : []),
]

/**
 * Lists the hashes of the records that identities of 0.1.0 got whose number was only a pseudonym: they are found when the
 * number comes back. They are made of the pseudonym's first version.
 */
export const pseudonymHashes = (keys: PhoneKeys, owned: OwnedPhone): string[] =>
  phoneSpellings(owned.phone).flatMap((spelling) => {
    const pseudonym = derivePseudonyms(keys, owned.developerId, spelling).at(-1) ?? ''
    return ownedPhoneHashes(keys, { ...owned, phone: pseudonym })
  })

/** Brings the contexts to the newest version of their key. */
export const upgradeContexts = (keys: Pick<Keys, 'context'>, record: PhoneRecord): PhoneRecord => ({
  ...record,
  contexts: record.contexts.map((one) => ({ ...one, hash: upgradeContext(keys, one.hash) })),
})

/** Hashes under which 0.1.0 kept the budgets of a number, in all spellings: those of the key's first version. */
export const oldPhoneHashes = (keys: PhoneKeys, phone: string): string[] =>
  phoneSpellings(phone).map((spelling) => indexHashes(keys.phone, spelling).at(-1) ?? '')

const oldBudgetsOf = (keys: PhoneKeys, { developerId, phone }: OwnedPhone) => ({
  developerId,
  phoneHashes: oldPhoneHashes(keys, phone),
})

/** Moves the strictest budget of the developer's applications into that of strangers: a locked phone stays locked. */
function withOldBudgets(record: PhoneRecord, budgets: readonly CheckBudget[]): PhoneRecord {
  if (budgets.length === 0) return record
  const { stranger } = record.usages
  const checks = budgets.reduce(stricter, stranger.checks)
  return { ...record, usages: { ...record.usages, stranger: { ...stranger, checks } } }
}

/** Puts a request at the head of the phone's list. The number stays the one that was verified, if any was. */
export const withRequest = (record: PhoneRecord, { id, phone, country }: OtpRequest): PhoneRecord => ({
  ...record,
  ...(record.identity === null && { phone, country }),
  newestRequest: id,
})
