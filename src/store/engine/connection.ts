import type { Database, QueryExecutor } from './database.ts'
import type { Sealing } from './sealing.ts'

/** A connection that stores use: that of a transaction, or the one that only reads. */
export type Connection = {
  database: Database
  /** Runs statements on the connection. */
  executor: QueryExecutor
  /** Encrypts and decrypts the values of sealed columns. */
  sealing: Sealing
}
