import { hmac, type Keys } from './keys.ts'

/** 84 bits: a thousand million numbers of one developer have different ones, and rows that get them grow little. */
const pseudonymLength = 14

/**
 * What stands for a phone number once its time is over: the same for all records of one developer, so that they still
 * belong together, another for everybody else, and nothing leads back to the number but the master key and the number
 * itself.
 */
export function derivePseudonym(keys: Pick<Keys, 'pseudonym'>, developerId: string, phone: string): string {
  const digest = hmac(keys.pseudonym).update(`${developerId}\n${phone}`).digest('base64url')
  return `anon_${digest.slice(0, pseudonymLength)}`
}

/** What stands for a phone number that was erased: the same for everybody. */
export const erasedPhone = 'erased'

/** Whether a record still holds the number itself, which E.164 begins with a plus. */
export const isPlainPhone = (phone: string | null): phone is string => phone?.startsWith('+') === true
