import { createHash } from 'node:crypto'
import type { Migration } from './migration-files.ts'

export type AppliedMigration = { name: string; checksum: string }

/** The database cannot be used by this version of otpd. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError'
  /** Advice for the operator. */
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
  }
}

/** SHA-256 of the SQL text, in hex. */
export const migrationChecksum = (migration: Migration) =>
  createHash('sha256').update(migration.sql).digest('hex')

/**
 * Returns the migrations that the database lacks.
 *
 * @throws MigrationError the database is newer than this version, or one of its migrations differs from this version's
 */
export function pendingMigrations(available: Migration[], applied: AppliedMigration[]): Migration[] {
  const unknown = applied[available.length]
  if (unknown) {
    throw new MigrationError(
      `the database is newer than this otpd: it has migration ${unknown.name}`,
      'Install the newer otpd, or restore the backup that the upgrade made (otpd backup list): otpd restore FILE. Nothing was changed.',
    )
  }
  requireSameMigrations(available, applied)
  return available.slice(applied.length)
}

/** Requires that the migrations that a database and this version both have are the same. @throws MigrationError */
export function requireSameMigrations(available: Migration[], applied: AppliedMigration[]): void {
  for (const [index, expected] of available.entries()) {
    const appliedMigration = applied[index]
    if (!appliedMigration) return
    if (
      expected.name !== appliedMigration.name ||
      migrationChecksum(expected) !== appliedMigration.checksum
    ) {
      throw new MigrationError(
        `the database was created by a different build: its migration ${appliedMigration.name} differs from this otpd's`,
        'Use the otpd that created it, or restore a backup. Nothing was changed.',
      )
    }
  }
}

/** Whether migrations write existing rows again, which takes time and space in proportion to the database. */
export const rewritesRows = (migrations: readonly Migration[]): boolean =>
  migrations.some(({ sql }) => /^\s*(insert (or \w+ )?into|update )/im.test(sql))
