import type { GuardChanges, GuardRows } from '../store/guard.ts'
import { historyKey, type GuardKeys } from './row-keys.ts'
import { hourOf, openSubject } from './subject.ts'

/** Keys of the rows of one call of the guard, and the rows, which it reads when it needs them. */
export type GuardFacts = { keys: GuardKeys; rows: GuardRows }

/** @returns undefined without keys: the message is exempt */
export const readGuardFacts = (rows: GuardRows, keys: GuardKeys | undefined): GuardFacts | undefined =>
  keys && { keys, rows }

/** Names all rows that a call may read, also after the changes of other calls. */
export const namesOf = (rows: GuardRows, keys: GuardKeys): string[] => [
  ...firstNames(keys),
  ...historyNames(rows, keys),
]

/** Names those of them that do not follow from others. The pool pays once other calls have spent the country's own. */
export function firstNames({ subjects, relay, pool, total, spend, challenge }: GuardKeys): string[] {
  const { country = relay?.country, prefix, network, device } = subjects ?? {}
  const names = [country, prefix, network, device, relay?.volume, subjects && pool, total, spend, challenge]
  return names.filter((name) => name !== undefined)
}

/** Names the history that takes up the last hour of the country, or of the messages that are relayed to it. */
function historyNames(rows: GuardRows, { subjects, relay, judgedAt }: GuardKeys): string[] {
  const name = relay?.volume ?? subjects?.country
  if (name === undefined || judgedAt === undefined) return []
  const isDue = openSubject(rows.row(name), judgedAt).about.hour !== hourOf(judgedAt)
  return isDue ? [historyKey(name)] : []
}

export const noGuardChanges = (): GuardChanges => ({ rows: new Map(), decisions: new Map() })
