import type { GuardAlert, GuardRule } from '../model/guard.ts'
import type { GuardChanges } from '../store/guard.ts'
import { noCountry } from '../model/phone.ts'
import { allowanceOf, relayAllowance } from './allowances.ts'
import type { GuardFacts } from './facts.ts'
import { historyKey, type GuardedRequest, type RelayKeys } from './row-keys.ts'
import type { GuardSettings } from './settings.ts'
import {
  addMessages,
  closeSubject,
  draw,
  giveBack,
  namedBase,
  openSubject,
  usageOf,
  type Subject,
} from './subject.ts'
import { findAlert, noteHours } from './usual.ts'

/**
 * Compares a message with the code of another system with what is usual, because most callers never tell whether it was
 * verified, and counts it if it passes. Beyond that the allowance of the country pays, which has evidence if they do.
 *
 * @param code of the country
 */
export function judgeRelayed(
  settings: GuardSettings,
  { rows }: GuardFacts,
  keys: RelayKeys,
  code: string,
  now: number,
  changes: GuardChanges,
): { blocked: boolean; violatedRules: GuardRule[]; alert: GuardAlert | undefined } {
  const stored = rows.row(keys.volume)
  const relay = openSubject(stored, now)
  const country = openSubject(rows.row(keys.country), now)
  const hours = noteHours(relay, stored, () => rows.row(historyKey(keys.volume)), true)
  if (hours) changes.rows.set(historyKey(keys.volume), hours)
  const isUnusual = usageOf(relay).unverified >= ownAllowance(settings, relay, code)
  const { unverified, evidence } = usageOf(country)
  const isExceeded = isUnusual && unverified >= allowanceOf('country', evidence)
  const blocked = isExceeded && settings.mode === 'enforce'
  if (!blocked) addMessages(relay, now, 1)
  if (isUnusual && !isExceeded) {
    draw(country, relay)
    changes.rows.set(keys.country, closeSubject(country))
  }
  const alert = findAlert(code, relay, undefined, isExceeded)
  if (alert) relay.alertedAt = now
  changes.rows.set(keys.volume, closeSubject(relay))
  return { blocked, violatedRules: isExceeded ? ['RELAY_VOLUME'] : [], alert }
}

/** Takes such a message back, and gives back what the country paid too much. */
export function takeBackRelayed(
  settings: GuardSettings,
  { rows }: GuardFacts,
  keys: RelayKeys,
  country: Subject,
  { createdAt, country: code }: GuardedRequest,
  changes: GuardChanges,
): void {
  const relay = openSubject(rows.row(keys.volume), country.now)
  addMessages(relay, createdAt, -1)
  if (giveBack(relay, ownAllowance(settings, relay, code ?? noCountry), country))
    changes.rows.set(keys.country, closeSubject(country))
  changes.rows.set(keys.volume, closeSubject(relay))
}

/** Allowance of a country for codes of other systems, without that of its evidence. */
export const ownAllowance = (settings: GuardSettings, relay: Subject, code: string): number =>
  relayAllowance(relay.about.usualDay, namedBase(settings, relay, code))
