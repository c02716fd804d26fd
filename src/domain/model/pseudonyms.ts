import { indexHash, indexHashes, upgradeHash, type HashForm, type Keys } from './keys.ts'

/** 84 bits: a billion numbers of one developer do not collide, and rows that get a pseudonym grow little. */
const form: HashForm = (digest) => `anon_${digest.toString('base64url').slice(0, 14)}`

/**
 * Derives the pseudonym that replaces a phone number after its retention. It is the same in all records of
 * one developer, which therefore stay linked, and different for every other developer. Only the keys
 * together with the number itself lead back to it.
 */
export const derivePseudonym = (keys: Pick<Keys, 'pseudonym'>, developerId: string, phone: string): string =>
  indexHash(keys.pseudonym, `${developerId}\n${phone}`, form)

/** As `derivePseudonym`, in all versions of the key, newest first. */
export const derivePseudonyms = (
  keys: Pick<Keys, 'pseudonym'>,
  developerId: string,
  phone: string,
): string[] => indexHashes(keys.pseudonym, `${developerId}\n${phone}`, form)

/** Brings a pseudonym to the newest version of the key. */
export const upgradePseudonym = (keys: Pick<Keys, 'pseudonym'>, pseudonym: string): string =>
  upgradeHash(keys.pseudonym, pseudonym, form)

/** Replaces an erased phone number; the same for all of them. */
export const erasedPhone = 'erased'

/** Replaces a phone number that cannot be decrypted where it is answered; never stored. */
export const unreadablePhone = 'unreadable'

/** Tells whether a record still holds the number itself: E.164 begins with a plus. */
export const isPlainPhone = (phone: string | null): phone is string => phone?.startsWith('+') === true

/** Tells whether a record holds a pseudonym. */
export const isPseudonym = (phone: string | null): phone is string => phone?.startsWith('anon_') === true
