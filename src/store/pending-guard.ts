import type { GuardChanges, GuardRows } from '../domain/store/guard.ts'

const noRows: ReadonlyMap<string, never> = new Map<string, never>()

/** Adds the changes of a later call to those of earlier ones. */
export function mergeGuardChanges(into: GuardChanges, changes: GuardChanges): void {
  for (const [subject, country] of changes.countries) into.countries.set(subject, country)
  for (const [key, counts] of changes.counts) into.counts.set(key, counts)
  for (const [context, day] of changes.contexts) into.contexts.set(context, day)
  for (const [key, decision] of changes.decisions) {
    const { flagged = 0, blocked = 0 } = into.decisions.get(key) ?? {}
    into.decisions.set(key, {
      ...decision,
      flagged: flagged + decision.flagged,
      blocked: blocked + decision.blocked,
    })
  }
}

/** Reads rows as they will be once the pending changes are written. */
export function withPendingChanges(rows: GuardRows, pending: GuardChanges): GuardRows {
  return {
    country: (subject) => pending.countries.get(subject) ?? rows.country(subject),

    async counts(locked, others) {
      const isStored = (key: string) => !pending.counts.has(key)
      const [storedLocked, storedOthers] = [locked.filter(isStored), others.filter(isStored)]
      const stored =
        storedLocked.length + storedOthers.length > 0 ? await rows.counts(storedLocked, storedOthers) : noRows
      return overlay(stored, pending.counts, [...locked, ...others])
    },

    async contexts(contexts) {
      const missing = contexts.filter((context) => !pending.contexts.has(context))
      return overlay(missing.length > 0 ? await rows.contexts(missing) : noRows, pending.contexts, contexts)
    },
  }
}

function overlay<V>(
  stored: ReadonlyMap<string, V>,
  pending: ReadonlyMap<string, V>,
  keys: readonly string[],
): ReadonlyMap<string, V> {
  const found = new Map(stored)
  for (const key of keys) {
    const value = pending.get(key)
    if (value !== undefined) found.set(key, value)
  }
  return found
}
