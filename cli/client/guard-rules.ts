import { dayMs, hourMs, minuteMs } from '../../src/shared/durations.ts'
import { canonicalPhone, compactPhone, dropSeparators, normalizeCountry } from '../../src/shared/spellings.ts'
import type { GuardListRule } from './resources.ts'
import { invalidValueError } from '../terminal/errors.ts'
import { printable } from '../terminal/text.ts'

/**
 * Says what a rule does that concerns a whole calling code or much of a network, which is seldom meant: `+1`, `0.0.0.0/0`.
 *
 * @returns null for a narrower rule
 */
export function describeWideRule(effect: GuardListRule['effect'], value: string): string | null {
  // 001 is not the prefix +1, but numbers of no country.
  const prefix = /^(?:\+|00(?!1$))([1-9]\d?)[*…]?$/.exec(dropSeparators(value))?.[1]
  const isWideNetwork = /^[\d.]+\/0*[0-7]$|:.*\/0*(\d|1[0-5])$/.test(value)
  if (prefix === undefined && !isWideNetwork) return null
  const concerned =
    prefix === undefined ? `users in the network ${value}` : `numbers that begin with +${prefix}`
  return effect === 'deny'
    ? `This refuses codes for all ${concerned}.`
    : `With this, codes for all ${concerned} pass the allowances of the guard.`
}

/** Brings the value of a rule to one form, in which all spellings of a phone, a prefix or a country are equal. */
export function canonicalRuleValue(text: string): string {
  if (/^[a-z]{2}$/i.test(text)) return normalizeCountry(text)
  // The country of numbers that have none.
  if (text === '001') return text
  const compact = compactPhone(text)
  return compact.startsWith('+') ? canonicalPhone(compact.replace(/[*…]$/, '')) : text
}

/** Converts how long a rule applies to a time. @throws usage error */
export function readEnd(text: string, nowMs: number): string {
  const [, count, unit] = /^([1-9]\d{0,4})([mhd])$/.exec(text) ?? []
  if (count === undefined)
    throw invalidValueError('for', `a time like 30m, 24h or 7d, not "${printable(text)}"`)
  const unitMs = unit === 'm' ? minuteMs : unit === 'h' ? hourMs : dayMs
  return new Date(nowMs + Number(count) * unitMs).toISOString()
}
