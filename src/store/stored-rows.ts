import type { NewAdmission } from '../domain/model/rate-limit.ts'
import type { Operation, Rows } from '../domain/store/operation.ts'

/** Rows as the database has them, for the calls of one transaction: see `sqlite-rows.ts` and `postgres-rows.ts`. */
export type StoredRows = {
  rows: Rows
  /**
   * Reads and locks the rows that calls name. On PostgreSQL, where they must be there before a call decides.
   *
   * @param isGuardRead whether the rows of the guard are among them
   * @returns the calls that can decide; the others lost a race, and their rows must be read in another transaction
   */
  load?(
    calls: ReadonlyArray<Operation<unknown>>,
    isGuardRead: boolean,
  ): Promise<ReadonlySet<Operation<unknown>>>
  /** Checks that a request which a call has read, and changes, is locked. @throws RowNotNamedError */
  requireLocked?(requestId: string): void
  /** Keeps an admission for later calls of the transaction, where they are not in memory. */
  keepAdmission?(admission: NewAdmission): void
  /** Ends the calls of a transaction. */
  end(isCommitted: boolean): void
}
