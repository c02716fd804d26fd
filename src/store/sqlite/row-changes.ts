import type { Database } from '../engine/database.ts'
import type { TransactionHooks } from './transaction-hooks.ts'

/**
 * Creates the signal of commits that changed rows, by this process or another.
 *
 * @param lookForForeign runs the hooks for commits of other processes
 */
export function createRowChanges(lookForForeign: () => void) {
  const listeners = new Set<(isForeign: boolean) => unknown>()

  function notify(isForeign: boolean) {
    for (const listener of listeners) listener(isForeign)
  }

  const notifyForeign = () => notify(true)
  const changes: NonNullable<Database['changes']> = {
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    lookForForeign,
    notifyForeign,
  }
  const hooks: TransactionHooks = { onForeignCommit: notifyForeign }
  return { changes, hooks, notifyOwn: () => notify(false) }
}
