import type { TransactionHooks } from './transaction-hooks.ts'

/**
 * Creates a counter of the writes to some tables. Rows that were read under a version are still true while it is the same.
 *
 * It grows when something is written, so that the transactions behind it in the batch read again, and once more when that is
 * committed or rolled back: readers between the two have read what was true before, and transactions what is true no longer.
 */
export function createVersionCounter() {
  let value = 0
  let hasUncommitted = false

  function onEnd() {
    if (!hasUncommitted) return
    value++
    hasUncommitted = false
  }

  const hooks: TransactionHooks = {
    onCommit: onEnd,
    onRollback: onEnd,
    onForeignCommit: () => void value++,
  }

  return {
    hooks,
    current: () => value,
    /** Call it in a transaction, after the write. */
    increment() {
      value++
      hasUncommitted = true
    },
  }
}
