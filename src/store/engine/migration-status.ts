import { existsSync } from 'node:fs'
import { withReadonlyConnection } from '../files/backup.ts'
import { readAppliedMigrations, pendingMigrations, sqliteMigrations } from './migrate.ts'

export type MigrationStatus = { applied: string[]; pending: string[] }

/**
 * Reads what a database has and what this version would apply; changes nothing, not even where there is none yet.
 *
 * @throws MigrationError see pendingMigrations
 */
export function readMigrationStatus(database: string): MigrationStatus {
  const applied = existsSync(database) ? withReadonlyConnection(database, readAppliedMigrations) : []
  const pending = pendingMigrations(sqliteMigrations, applied)
  return { applied: applied.map(({ name }) => name), pending: pending.map(({ name }) => name) }
}
