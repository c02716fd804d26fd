import { openCountry } from './country.ts'
import { addUnverified } from './counts.ts'
import type { CountedSubject, GuardKeys } from './row-keys.ts'
import { countLastDay, guardFigures, isExhausted } from './rules.ts'
import { GuardFault, unusedCountry, type GuardCountry, type GuardCounts } from '../model/guard.ts'
import type { GuardChanges, GuardRows } from '../store/guard.ts'
import type { Awaitable } from '../model/awaitable.ts'

/** The rows that one call of the guard reads. */
export type GuardFacts = {
  keys: GuardKeys
  country: GuardCountry
  counts: ReadonlyMap<string, GuardCounts>
  /** UTC days of the last verification. Empty unless a rule may block the message: then alone they matter. */
  contexts: ReadonlyMap<string, number>
}

const noRows: ReadonlyMap<string, never> = new Map<string, never>()

/**
 * Reads what a call of the guard needs, and locks what it may change: the country, then prefix and network (the lower key
 * first), then the total.
 *
 * @returns undefined without keys: the message is exempt
 * @throws GuardFault
 */
export const loadGuardFacts = (
  rows: GuardRows,
  keys: GuardKeys | undefined,
): Awaitable<GuardFacts | undefined> => (keys ? loadFacts(rows, keys) : undefined)

async function loadFacts(rows: GuardRows, keys: GuardKeys): Promise<GuardFacts> {
  const { counted, contexts, total } = keys
  try {
    const country = counted && (await rows.country(counted.country))
    const { locked, others } = countsKeys(keys)
    const counts = counted || total !== undefined ? await rows.counts(locked, others) : noRows
    const facts = { keys, country: country ?? unusedCountry, counts, contexts: noRows }
    const readsContexts = contexts.length > 0 && mayViolateRules(facts)
    return readsContexts ? { ...facts, contexts: await rows.contexts(contexts) } : facts
  } catch (error) {
    throw new GuardFault(error)
  }
}

/** Tells whether a rule from which contexts can exempt may block the message. */
function mayViolateRules({ keys: { counted, judgedAt }, country, counts }: GuardFacts): boolean {
  if (!counted || judgedAt === undefined) return false
  const opened = openCountry(country, judgedAt)
  if (opened.hasAlert() || opened.isClosed()) return true
  const pair = countedPair(counts, counted.prefix, judgedAt)
  return isExhausted(countLastDay(pair, judgedAt), guardFigures.prefixPerDay)
}

/** Counts of a prefix or network with one more message, and those of the day before. */
export const countedPair = (
  counts: GuardFacts['counts'],
  { today, before = '' }: CountedSubject,
  now: number,
) => ({ today: addUnverified(counts.get(today), now), before: counts.get(before) })

function countsKeys({ counted, total }: GuardKeys): { locked: string[]; others: string[] } {
  const locked: string[] = []
  const others: string[] = []
  if (counted) {
    const { prefix, network } = counted
    locked.push(prefix.today)
    if (prefix.before !== undefined) others.push(prefix.before)
    if (network) {
      if (network.today < prefix.today) locked.unshift(network.today)
      else locked.push(network.today)
      if (network.before !== undefined) others.push(network.before)
    }
  }
  if (total !== undefined) locked.push(total)
  return { locked, others }
}

export const noGuardChanges = (): GuardChanges => ({
  countries: new Map(),
  counts: new Map(),
  contexts: new Map(),
  decisions: new Map(),
})
