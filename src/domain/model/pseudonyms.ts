import { hmac, type Keys } from './keys.ts'

/** 84 bits: a billion numbers of one developer do not collide, and rows that get a pseudonym grow little. */
const pseudonymLength = 14

/**
 * Derives the pseudonym that replaces a phone number after its retention. It is the same in all records of
 * one developer, which therefore stay linked, and different for every other developer. Only the master key
 * together with the number itself leads back to it.
 */
export function derivePseudonym(keys: Pick<Keys, 'pseudonym'>, developerId: string, phone: string): string {
  const digest = hmac(keys.pseudonym).update(`${developerId}\n${phone}`).digest('base64url')
  return `anon_${digest.slice(0, pseudonymLength)}`
}

/** Replaces an erased phone number; the same for all of them. */
export const erasedPhone = 'erased'

/** Tells whether a record still holds the number itself: E.164 begins with a plus. */
export const isPlainPhone = (phone: string | null): phone is string => phone?.startsWith('+') === true
