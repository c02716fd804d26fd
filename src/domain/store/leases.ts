/** A lease as its holder knows it. `epoch` is the fencing token: it grows whenever another owner takes the lease. */
export type HeldLease = { name: string; owner: string; epoch: number }

/**
 * Leases of nodes, by the time of the database: one that was paused, or whose clock is wrong, cannot hold a lease longer
 * than the others believe.
 */
export type LeaseStore = {
  /** Returns the time of the transaction in milliseconds: the database's on PostgreSQL, this process's on SQLite. */
  now(): Promise<number>
  /**
   * Takes a lease that is free or has run out, or renews it, for `durationMs` from now.
   *
   * @returns undefined while another owner holds it
   */
  acquire(request: { name: string; owner: string; durationMs: number }): Promise<HeldLease | undefined>
  /** Tells whether the lease was not taken by another owner, and keeps it so until the transaction ends. */
  isHeld(lease: HeldLease): Promise<boolean>
  /** Ends the lease, so that another node need not wait for its end. Does nothing if another has taken it. */
  release(lease: HeldLease): Promise<void>
  /** Renews the lease that says that a node lives. Always changes a row, so it also proves that the disk takes writes. */
  renewNode(node: string, durationMs: number): Promise<void>
  /** Writes a row of many pages and deletes it: on a full disk a row may still fit into a page that has room. */
  takePages(node: string): Promise<void>
  /** Deletes the leases of nodes that have run out. @returns the nodes whose lease lasts */
  deleteLostNodes(): Promise<string[]>
}
