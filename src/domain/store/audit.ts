import type { AuditAction, AuditEntry } from '../model/audit.ts'
import type { DeleteOldest } from './delete-oldest.ts'

export type AuditQuery = {
  action?: AuditAction | undefined
  targetId?: string | undefined
  limit: number
  /** An id; older entries only. */
  before?: string | undefined
  /** The lowest id. */
  from?: string | undefined
}

export type AuditStore = {
  /**
   * Adds an entry to the chain of its developer, or to the installation's. It is written at the end of the transaction,
   * in which it cannot be read.
   */
  insert(entry: AuditEntry): Promise<void>
  /** Lists newest first. @param developerId undefined: all developers and the installation */
  list(developerId: string | undefined, query: AuditQuery): Promise<AuditEntry[]>
  /** Deletes entries; the heads of their chains keep the hash of the last one. */
  deleteOldest: DeleteOldest
}
