/**
 * Hooks of state in memory that changes with the transactions: it keeps what a job changes as pending, writes it when the batch
 * commits, and takes it over only after COMMIT. All are called synchronously.
 */
export type TransactionHooks = {
  /** Counts the pending changes that no row has yet: a job that failed must leave none. */
  countPending?(): number
  /** Called before COMMIT; may write. A throw rejects the batch. */
  beforeCommit?(): void
  /** Called right after COMMIT, when readers see the changes: before they are on disk, and before any caller learns of it. */
  onCommit?(): void
  /** Called if the batch was rolled back: discards everything that is pending. */
  onRollback?(): void
  /**
   * Called if another connection has committed: at the beginning of a batch inside its transaction, or outside of any
   * transaction when `noticeForeignCommits` finds it.
   */
  onForeignCommit?(): void
}
