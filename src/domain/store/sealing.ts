import type { SealedTable } from '../model/sealed-tables.ts'

/** Brings sealed columns to the newest version of the seal key. */
export type SealingStore = {
  /**
   * Seals the next rows of a table: plain values, which a database of 0.1.0 holds, and those sealed with an older version.
   * Values that cannot be decrypted stay as they are. A row that another transaction changes at the same time is left to
   * it: every writer seals all columns of a row.
   *
   * @param position key of the last row that was handled; `''` before the first
   * @returns the new position; undefined if no row was left
   */
  sealRows(table: SealedTable, position: string, limit: number): Promise<string | undefined>
}
