import type { AuditAction, AuditEntry } from '../model/audit.ts'

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
  insert(entry: AuditEntry): Promise<void>
  delete(id: string): Promise<void>
  /** Lists newest first. @param developerId undefined: all developers and the installation */
  list(developerId: string | undefined, query: AuditQuery): Promise<AuditEntry[]>
  /** Deletes a batch of the oldest entries up to a time. @returns true if there may be more */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
