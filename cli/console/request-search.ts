import { otpStatuses, type OtpStatus } from '../../src/shared/otp-values.ts'
import { isFullId } from '../client/find.ts'
import { isLastDigits } from '../client/last-digits.ts'
import type { Application } from '../client/resources.ts'

/** Name of the list of requests, and of the state that keeps its search. */
export const requestListName = 'otp'
export const requestSearchName = 'otp search'

/** A search that the server answers, from all requests ever sent. */
export type RequestSearch =
  | { kind: 'phone'; phone: string }
  /**
   * Numbers that end with these digits, among the newest requests.
   *
   * @property whole the number that these digits are if only its `+` was left out, which is looked for first
   */
  | { kind: 'digits'; phone: string; whole?: string }
  | { kind: 'id'; id: string }
  | { kind: 'status'; status: OtpStatus }
  | { kind: 'app'; appId: string }

/** As few digits as a number can have with its country code. */
const phoneDigitsMin = 7

/**
 * Reads what was typed into the search of the requests.
 *
 * @returns null if the server cannot search for it; the console then searches the rows that it has
 */
export function parseRequestSearch(
  text: string,
  applications: readonly Pick<Application, 'id' | 'name'>[],
): RequestSearch | null {
  const typed = text.trim()
  if (isFullId(typed, 'otp')) return { kind: 'id', id: typed }
  const phone = readPhone(typed)
  if (isLastDigits(typed))
    return {
      kind: 'digits',
      phone: typed.replaceAll(/\D/g, ''),
      // With a 0 it is written as in its country.
      ...(phone !== null && !typed.startsWith('0') && { whole: phone }),
    }
  if (phone !== null) return { kind: 'phone', phone }
  const status = otpStatuses.find((name) => name === typed.toLowerCase())
  if (status !== undefined) return { kind: 'status', status }
  const app = applications.find(({ id, name }) => id === typed || name === typed)
  return app === undefined ? null : { kind: 'app', appId: app.id }
}

/** Returns a typed phone number with its `+`, which is easily left out; null if the text is none. */
export function readPhone(text: string): string | null {
  const typed = text.trim()
  if (!/^(\+|00)?[\d\s().-]+$/.test(typed)) return null
  if (typed.replaceAll(/\D/g, '').length < phoneDigitsMin) return null
  return typed.startsWith('+') || typed.startsWith('00') ? typed : `+${typed}`
}
