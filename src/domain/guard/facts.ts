import type { GuardRow } from '../model/guard.ts'
import type { GuardChanges, GuardRows } from '../store/guard.ts'
import { allowanceOf } from './allowances.ts'
import { historyKey, type GuardKeys } from './row-keys.ts'
import { hourOf, openSubject } from './subject.ts'

/** The rows that one call of the guard reads. */
export type GuardFacts = { keys: GuardKeys; rows: ReadonlyMap<string, GuardRow> }

/**
 * Reads what a call of the guard needs: the subjects and the total; then, for few messages, the pool and the history of
 * the country.
 *
 * @returns undefined without keys: the message is exempt
 */
export function readGuardFacts(rows: GuardRows, keys: GuardKeys | undefined): GuardFacts | undefined {
  if (!keys) return undefined
  const subjects = subjectNames(keys)
  if (subjects.length === 0) return { keys, rows: new Map() }
  const found = rows.rows(subjects)
  const further = furtherNames(keys, found)
  return { keys, rows: further.length === 0 ? found : new Map([...found, ...rows.rows(further)]) }
}

/** Names all rows that `readGuardFacts` may read, also after the changes of other calls. */
export const namesOf = (rows: GuardRows, keys: GuardKeys): string[] => {
  const names = firstNames(keys)
  return [...names, ...historyNames(keys, rows.rows(names))]
}

/** Names those of them that do not follow from others. The pool pays once other calls have spent the country's own. */
export const firstNames = (keys: GuardKeys): string[] =>
  keys.subjects ? [...subjectNames(keys), keys.pool] : subjectNames(keys)

/** Names the rows that are read at once: the subjects and the total. */
function subjectNames({ subjects, relay, total, challenge }: GuardKeys): string[] {
  const wanted: string[] = []
  if (subjects) {
    wanted.push(subjects.country, subjects.prefix)
    if (subjects.network !== undefined) wanted.push(subjects.network)
    if (subjects.device !== undefined) wanted.push(subjects.device)
  }
  if (relay) wanted.push(relay.volume, ...(subjects ? [] : [relay.country]))
  if (total !== undefined) wanted.push(total)
  if (challenge !== undefined) wanted.push(challenge)
  return wanted
}

/** Names the rows that depend on the country's: the pool if it may pay, and the history once an hour. */
function furtherNames(keys: GuardKeys, found: GuardFacts['rows']): string[] {
  const { subjects, pool, judgedAt } = keys
  if (!subjects) return historyNames(keys, found)
  const stored = found.get(subjects.country)
  if (judgedAt === undefined) return stored?.windows[3]?.length ? [pool] : []
  const { unverified, evidence } = openSubject(stored, judgedAt).usage()
  const isPoolNeeded = unverified >= allowanceOf('country', evidence)
  return [...historyNames(keys, found), ...(isPoolNeeded ? [pool] : [])]
}

/** Names the history that takes up the last hour of the country, or of the messages that are relayed to it. */
function historyNames({ subjects, relay, judgedAt }: GuardKeys, found: GuardFacts['rows']): string[] {
  const name = relay?.volume ?? subjects?.country
  if (name === undefined || judgedAt === undefined) return []
  const stored = found.get(name)
  const isDue = openSubject(stored, judgedAt).about.hour !== hourOf(judgedAt)
  return isDue && (stored || relay !== undefined) ? [historyKey(name)] : []
}

export const noGuardChanges = (): GuardChanges => ({ rows: new Map(), decisions: new Map() })
