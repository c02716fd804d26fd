import { dayMs } from '../../shared/durations.ts'
import { canonicalPhone } from '../../shared/spellings.ts'
import { deviceOf } from './context.ts'
import { indexHash, indexHashes, upgradeHash, type HashForm, type Keys } from './keys.ts'
import type { Environment } from '../../shared/otp-values.ts'

/**
 * Trust levels of calls about a phone: from a device that verified it before, from a network that did (a carrier's address is
 * shared), and from anyone else. Each has budgets of its own, so that a stranger cannot spend those of the owner. A request
 * keeps the level of the send that made it.
 */
export const trustLevels = ['device', 'network', 'stranger'] as const
export type TrustLevel = (typeof trustLevels)[number]

/** Budget of failed checks of one phone at one trust level, across all its requests. */
export type CheckBudget = {
  /** When the last failure so far is forgiven. One is forgiven per hour. */
  refilledAt: number
  /** Failures since the last success. */
  consecutiveFailures: number
  lockedUntil: number | null
}

/** Usage of a phone's budgets at one trust level. */
export type PhoneUsage = {
  /** Times of the newest sends, oldest first. */
  sends: readonly number[]
  /** Null before the first failure. */
  checks: CheckBudget | null
}

/** A context that verified the phone, with the time of its last verification. */
export type KnownContext = { hash: string; verifiedAt: number }

/** The end user that verified the phone. */
export type PhoneIdentity = {
  id: string
  verificationCount: number
  firstVerifiedAt: number
  lastVerifiedAt: number
  /** Ids of the applications that verified it. */
  applications: readonly string[]
}

/** Phone of one developer in one environment, in any spelling. */
export type OwnedPhone = { developerId: string; environment: Environment; phone: string }

/** A phone that may have no record yet. */
export type LocatedPhone = OwnedPhone & { country: string | null }

/**
 * Everything that is kept about one phone of one developer in one environment, under all its spellings. One row, so
 * that a call reads and writes one page.
 */
export type PhoneRecord = LocatedPhone & {
  /** E.164 as last verified, before that as last sent; its pseudonym after its retention. */
  phone: string
  usages: Readonly<Record<TrustLevel, PhoneUsage>>
  /** Newest first. */
  contexts: readonly KnownContext[]
  identity: PhoneIdentity | null
  /** Newest OTP request: the head of the list that `OtpRequest.previousRequest` links. */
  newestRequest: string | null
  /** Time of the newest send; 0 before the first. */
  lastSentAt: number
}

/** How long a verification makes its phone and contexts known. */
export const knownLifetimeMs = 180 * dayMs
/** Network, device, and the guard's wider network of the last verifications. */
const knownContextsMax = 8

export const noUsage: PhoneUsage = { sends: [], checks: null }
export const noUsages = { device: noUsage, network: noUsage, stranger: noUsage } as const

export const emptyRecord = (owned: LocatedPhone): PhoneRecord => ({
  developerId: owned.developerId,
  environment: owned.environment,
  phone: owned.phone,
  country: owned.country,
  usages: noUsages,
  contexts: [],
  identity: null,
  newestRequest: null,
  lastSentAt: 0,
})

/** Returns the empty record of a phone that has none, as one that was loaded. */
export const missingPhone = (hash: string, owned: LocatedPhone) => ({
  hash,
  row: undefined,
  record: emptyRecord(owned),
  isNew: true,
})

/** 144 bits: the first 53 find the row, the others tell it from another phone's. */
const form: HashForm = (digest) => digest.toString('base64url').slice(0, 24)

const hashedText = ({ developerId, environment, phone }: OwnedPhone) =>
  `${developerId}\n${environment}\n${canonicalPhone(phone)}`

/** Keyed hash of the record of a phone, the same for every spelling. @param owned.phone or its pseudonym */
export const hashOwnedPhone = (keys: Pick<Keys, 'phone'>, owned: OwnedPhone): string =>
  indexHash(keys.phone, hashedText(owned), form)

/** As `hashOwnedPhone`, in all versions of the key, newest first. */
export const ownedPhoneHashes = (keys: Pick<Keys, 'phone'>, owned: OwnedPhone): string[] =>
  indexHashes(keys.phone, hashedText(owned), form)

/** Brings the hash of a phone to the newest version of the key. */
export const upgradeOwnedPhoneHash = (keys: Pick<Keys, 'phone'>, hash: string): string =>
  upgradeHash(keys.phone, hash, form)

/** Changes the usage at one trust level. */
export const withUsage = (
  record: PhoneRecord,
  trust: TrustLevel,
  usage: Partial<PhoneUsage>,
): PhoneRecord => ({
  ...record,
  usages: { ...record.usages, [trust]: { ...record.usages[trust], ...usage } },
})

/** Tells whether the developer verified the phone within 180 days. */
export const isKnownPhone = ({ identity }: PhoneRecord, now: number): boolean =>
  identity !== null && identity.lastVerifiedAt > now - knownLifetimeMs

/** Decides the trust level of a call: that of its device or network, if that verified this phone within 180 days. */
export function trustOfCall(
  record: PhoneRecord,
  sender: { clientIp: string | null; contexts: readonly string[] },
  now: number,
): TrustLevel {
  if (sender.contexts.length === 0 || record.contexts.length === 0) return 'stranger'
  const known = knownContexts(record, now)
  const isKnown = (context: string | undefined) => known.some(({ hash }) => hash === context)
  if (isKnown(deviceOf(sender))) return 'device'
  return sender.contexts.some(isKnown) ? 'network' : 'stranger'
}

/** Contexts that are still known. */
export const knownContexts = ({ contexts }: PhoneRecord, now: number): KnownContext[] =>
  contexts.filter(({ verifiedAt }) => verifiedAt > now - knownLifetimeMs)

/** Makes contexts known; the record keeps the last eight. */
export function rememberContexts(
  record: PhoneRecord,
  contexts: readonly string[],
  now: number,
): KnownContext[] {
  const others = knownContexts(record, now).filter(({ hash }) => !contexts.includes(hash))
  return [...contexts.map((hash) => ({ hash, verifiedAt: now })), ...others].slice(0, knownContextsMax)
}
