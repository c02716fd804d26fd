import type { GuardAlert, GuardRule } from '../model/guard.ts'
import type { GuardChanges } from '../store/guard.ts'
import { noCountry } from '../model/phone.ts'
import { allowanceOf, relayAllowance } from './allowances.ts'
import type { GuardFacts } from './facts.ts'
import { historyKey, type GuardedRequest, type RelayKeys } from './row-keys.ts'
import type { GuardSettings } from './settings.ts'
import { giveBack, namedBase, openSubject, type Subject } from './subject.ts'
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
  const stored = rows.get(keys.volume)
  const relay = openSubject(stored, now)
  const country = openSubject(rows.get(keys.country), now)
  const hours = noteHours(relay, stored, rows.get(historyKey(keys.volume)), now)
  if (hours) changes.rows.set(historyKey(keys.volume), hours)
  const isUnusual = relay.usage().unverified >= ownAllowance(settings, relay, code, now)
  const { unverified, evidence } = country.usage()
  const isExceeded = isUnusual && unverified >= allowanceOf('country', evidence)
  const blocked = isExceeded && settings.mode === 'enforce'
  if (!blocked) relay.add(now, 1)
  if (isUnusual && !isExceeded) {
    relay.draw(1)
    country.add(now, 1)
    changes.rows.set(keys.country, country.close())
  }
  const alert = findAlert(code, relay, undefined, now)
  changes.rows.set(keys.volume, relay.close(alert ? now : undefined))
  return { blocked, violatedRules: isExceeded ? ['RELAY_VOLUME'] : [], alert }
}

/** Takes such a message back, and gives back what the country paid too much. */
export function takeBackRelayed(
  settings: GuardSettings,
  { rows }: GuardFacts,
  keys: RelayKeys,
  country: Subject,
  message: GuardedRequest,
  now: number,
  changes: GuardChanges,
): void {
  const relay = openSubject(rows.get(keys.volume), now)
  relay.add(message.createdAt, -1)
  if (giveBack(relay, ownAllowance(settings, relay, message.country ?? noCountry, now), country))
    changes.rows.set(keys.country, country.close())
  changes.rows.set(keys.volume, relay.close())
}

const ownAllowance = (settings: GuardSettings, relay: Subject, code: string, now: number) =>
  relayAllowance(relay.about.usualDay, namedBase(settings, relay, code, now))
