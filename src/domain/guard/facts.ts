import { GuardFault, unusedCountry, type GuardCountry, type GuardCounts } from '../model/guard.ts'
import type { GuardChanges, GuardRows } from '../store/guard.ts'

/** A prefix or a network: its hash, and the keys of its counts. */
export type CountedSubject = {
  hash: string
  /** Key of the counts of the day of the message. */
  today: string
  /** Key of those of the day before; undefined if they are not read. */
  before: string | undefined
}

/** Keys of the counts of a stranger's message. */
export type CountedKeys = { country: string; prefix: CountedSubject; network: CountedSubject | undefined }

/** Keys of the rows that one call of the guard reads. */
export type GuardKeys = {
  /** Undefined if the message is not counted, since the phone is known. */
  counted: CountedKeys | undefined
  contexts: readonly string[]
  /** Key of the messages of the installation; undefined without a daily cap. */
  total: string | undefined
}

/** The rows that one call of the guard reads. */
export type GuardFacts = {
  keys: GuardKeys
  country: GuardCountry
  counts: ReadonlyMap<string, GuardCounts>
  /** UTC days of the last verification. */
  contexts: ReadonlyMap<string, number>
}

const noRows: ReadonlyMap<string, never> = new Map<string, never>()

/**
 * Reads what a call of the guard needs, and locks what it may change: the country, then prefix and network in the order
 * of their keys, then the total.
 *
 * @returns undefined without keys: the message is exempt
 * @throws GuardFault
 */
export async function loadGuardFacts(
  rows: GuardRows,
  keys: GuardKeys | undefined,
): Promise<GuardFacts | undefined> {
  if (!keys) return undefined
  const { counted, contexts, total } = keys
  try {
    const country = counted && (await rows.country(counted.country))
    const { locked, others } = countsKeys(keys)
    return {
      keys,
      country: country ?? unusedCountry,
      counts: counted || total !== undefined ? await rows.counts(locked, others) : noRows,
      contexts: contexts.length > 0 ? await rows.contexts(contexts) : noRows,
    }
  } catch (error) {
    throw new GuardFault(error)
  }
}

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
