import type { TransactionParticipant } from './transaction-participant.ts'

/**
 * Creates an epoch: a number that moves with every write to some tables. What was read under an epoch is still true
 * while the number is the same.
 *
 * It moves when something is written, so that the transactions behind it in the batch read again, and once more when
 * that is committed or rolled back: readers between the two have read what was true before, and transactions what is
 * true no longer.
 */
export function createEpoch() {
  let value = 0
  let hasUncommitted = false

  function onEnd() {
    if (!hasUncommitted) return
    value++
    hasUncommitted = false
  }

  const participant: TransactionParticipant = {
    onCommit: onEnd,
    onRollback: onEnd,
    onForeignCommit: () => void value++,
  }

  return {
    participant,
    current: () => value,
    /** Call it in a transaction, after the write. */
    move() {
      value++
      hasUncommitted = true
    },
  }
}
