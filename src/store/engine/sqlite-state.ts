import type { NewAdmission, RateLimit, StoredPolicy, Usage } from '../../domain/model/rate-limit.ts'
import type { GuardRow } from '../../domain/model/guard.ts'

/** The sliding-window log of admissions, in memory. */
type AdmissionLog = {
  usage(limit: RateLimit<StoredPolicy>, now: number): Usage
  insert(admissions: readonly NewAdmission[]): void
  forget(subject: string): Promise<number>
  latestTimestamp(): Promise<number | undefined>
  clampToNow(now: number): Promise<void>
  deleteOldest(until: number, batchSize: number): Promise<boolean>
  /** Lists all admissions. `subject` is a short id, `policy` its place in `storedPolicies`. */
  list(): Array<{ subject: number; policy: number; at: number; seq: number }>
}

/** Counts the writes to some tables. Rows that were read under a version are still true while it is the same. */
type VersionCounter = {
  current(): number
  /** Call it in a transaction, after the write. */
  increment(): void
}

/** Write-behind cache of the guard's rows. A crash loses the newest counts of some. */
export type GuardRowCache = {
  get(key: string): GuardRow | undefined
  /** Changes rows within the running transaction; undefined: the row was deleted from the table. */
  change(rows: ReadonlyMap<string, GuardRow | undefined>): void
  /** Writes the rows that are held back, within the running transaction. */
  write(): void
}

/**
 * Finds the records of phones by their hashes. A key that is found is only a hint: callers must compare the hash of its
 * record, which may have been deleted, or may be another phone's.
 */
export type PhoneIndex = {
  /** Lists the keys under which the record of a hash may be: almost always one, or none. */
  keys(hash: string): number[]
  /** Returns the key of a record that is not in the table yet, such as one that the running transaction added. */
  recentKey(hash: string): number | undefined
  /** Adds a record that the running transaction inserts. @returns its key, which no other record had */
  add(hash: string): number
  /** Removes a record that the running transaction deletes. */
  remove(hash: string, key: number): void
}

/** The number of a developer or an application, or the id of an endpoint. */
export type ListOwner = number | string

/** The sequence number of a row, or a text that begins with its id. */
export type ListKey = number | string

/** Lists to merge: each of these of each owner. */
export type ListSources = { owners: readonly ListOwner[]; lists: readonly number[] }

/** A position in the order of the keys; exclusive. */
export type ListRange = { before?: ListKey | undefined } | { after: ListKey }

/** Numbers of the lists that gain or lose a row: see `sqlite/list-numbers.ts`. */
export type ListChange = { readonly add: readonly number[]; readonly remove: readonly number[] }

/** Finds the rows of an owner in order. A list is complete at every moment. */
export type Lists = {
  /**
   * Changes lists of an owner. Call it in the transaction that changes the row.
   *
   * @param key finds the row, and sorts the list
   */
  change(change: ListChange, owner: ListOwner, key: ListKey): void
  /**
   * Reads the keys in any of the lists of any of the owners, without duplicates: the greatest first, or ascending with
   * `after`. Also those that the open transaction added.
   */
  page(sources: ListSources, range: ListRange, limit: number): ListKey[]
}

/** State that a process keeps in memory because it alone serves the file. It changes with the transactions. */
export type SqliteState = {
  readonly admissions: AdmissionLog
  /** Grows with each write to applications, developers, and the subscriptions of webhook endpoints. */
  readonly configuration: VersionCounter
  /** Grows when an entry of the log is deleted, or its phone replaced. */
  readonly log: VersionCounter
  /** Undefined if the database is open for reading only. */
  readonly guardRows: GuardRowCache | undefined
  /**
   * Takes up what other processes have committed, if this was not done in this turn of the event loop. Call it before
   * reading memory outside of a transaction; a transaction does it when it begins.
   */
  refresh(): void
  /** Finds the rows of an owner; PostgreSQL has ordinary indexes instead. */
  readonly lists: Lists
  /** Finds records of phones, for which PostgreSQL has an ordinary index. */
  readonly phoneIndex: { committed: PhoneIndex; uncommitted: PhoneIndex }
}
