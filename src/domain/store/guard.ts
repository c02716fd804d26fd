import type { GuardDecisions, GuardRow } from '../model/guard.ts'

/**
 * Rows that a call of the guard changed, as they are after it, by their keys. Decisions are added to those in the table.
 */
export type GuardChanges = {
  rows: Map<string, GuardRow>
  decisions: Map<string, GuardDecisions & { hour: number }>
}

export const noGuardChanges = (): GuardChanges => ({ rows: new Map(), decisions: new Map() })

/** The guard's rows of an operation. On PostgreSQL they are locked until the transaction ends, also if they do not exist yet. */
export type GuardRows = {
  /** @throws GuardFault the operation then runs again, with `fault` */
  row(key: string): GuardRow | undefined
  /** Why the rows cannot be read or written. The operation must pass without the guard, and change none of them. */
  readonly fault?: { cause?: unknown } | undefined
}

/** Stores what the guard counts. Prefixes, networks and devices appear only as keyed hashes. */
export type GuardStore = {
  rows(keys: readonly string[]): Promise<ReadonlyMap<string, GuardRow>>
  /**
   * Writes rows whole, and adds decisions, in the order of their keys. The caller has read the rows in this transaction.
   *
   * @throws GuardFault
   */
  apply(changes: GuardChanges): Promise<void>
  /** Reads the rows whose keys have a space and begin alike: countries, pools and histories of developers. */
  named(prefix: string): Promise<ReadonlyMap<string, GuardRow>>

  /** Lists the keys of rows after one, in their order. */
  listKeys(after: string, limit: number): Promise<string[]>
  delete(subject: string): Promise<void>

  /** Lists the decisions since an hour, in hours since the epoch. */
  decisions(fromHour: number): Promise<GuardDecisions[]>
  /** Deletes rows after a key, up to a later one, that no rule uses any more. */
  deleteUnused(after: string, last: string, now: number): Promise<void>
  /** Deletes a batch of decisions that are no longer shown. @returns false when none was left */
  deleteOldDecisions(now: number, batchSize: number): Promise<boolean>
}
