import { GuardFault, type GuardRow } from '../model/guard.ts'
import type { GuardChanges, GuardRows } from '../store/guard.ts'
import type { Awaitable } from '../model/awaitable.ts'
import { allowanceOf } from './allowances.ts'
import { historyKey, type GuardKeys } from './row-keys.ts'
import { hourOf, openSubject } from './subject.ts'

/** The rows that one call of the guard reads. */
export type GuardFacts = { keys: GuardKeys; rows: ReadonlyMap<string, GuardRow> }

/**
 * Reads what a call of the guard needs, and locks it: the subjects and the total in the order of their keys; then, for
 * few messages, the pool and the history of the country.
 *
 * @returns undefined without keys: the message is exempt
 * @throws GuardFault
 */
export const loadGuardFacts = (
  rows: GuardRows,
  keys: GuardKeys | undefined,
): Awaitable<GuardFacts | undefined> => (keys ? loadFacts(rows, keys) : undefined)

async function loadFacts(rows: GuardRows, keys: GuardKeys): Promise<GuardFacts> {
  const { subjects, relay, total, challenge } = keys
  const wanted: string[] = []
  if (subjects) {
    wanted.push(subjects.country, subjects.prefix)
    if (subjects.network !== undefined) wanted.push(subjects.network)
    if (subjects.device !== undefined) wanted.push(subjects.device)
  }
  if (relay !== undefined) wanted.push(relay)
  if (total !== undefined) wanted.push(total)
  if (challenge !== undefined) wanted.push(challenge)
  if (wanted.length === 0) return { keys, rows: new Map() }
  try {
    const found = await rows.rows(wanted.toSorted())
    const more = moreKeys(keys, found)
    return more.length === 0
      ? { keys, rows: found }
      : { keys, rows: new Map([...found, ...(await rows.furtherRows(more))]) }
  } catch (error) {
    throw new GuardFault(error)
  }
}

/** Names the rows that depend on the country's: the pool if it may pay, and the history once an hour. */
function moreKeys({ subjects, relay, pool, judgedAt }: GuardKeys, found: GuardFacts['rows']): string[] {
  if (relay !== undefined && judgedAt !== undefined)
    return openSubject(found.get(relay), judgedAt).about.hour === hourOf(judgedAt) ? [] : [historyKey(relay)]
  const stored = subjects && found.get(subjects.country)
  if (!subjects) return []
  if (judgedAt === undefined) return stored?.windows[3]?.length ? [pool] : []
  const { about, usage } = openSubject(stored, judgedAt)
  const { unverified, evidence } = usage()
  return [
    ...(stored && about.hour !== hourOf(judgedAt) ? [historyKey(subjects.country)] : []),
    ...(unverified >= allowanceOf('country', evidence) ? [pool] : []),
  ]
}

export const noGuardChanges = (): GuardChanges => ({ rows: new Map(), decisions: new Map() })
