import { closeSync, existsSync, openSync, renameSync, rmSync } from 'node:fs'
import { connect } from '../sqlite/database.ts'
import { fsyncPath } from './backup.ts'
import { dataFiles, fileTime, StartRefused } from './data-dir.ts'
import { newMasterKey, readKeyFile, writeMasterKey } from './master-key.ts'
import { describeMissing, hasDatabase } from './missing-database.ts'
import { bringUpToDate, toStartError } from './prepare-database.ts'

/**
 * Creates the database of a data directory that has none, and its master key if it is not configured. The caller must
 * hold the lock of the directory. The database gets its name last: a start that is killed is repeated by the next one.
 *
 * @param options.configured master key that does not come from the directory; null if it does
 * @param options.isForced create it also next to files of an earlier one, which are kept
 * @returns whether it did: false if there is a database
 * @throws StartRefused there was a database; or there is one, and `isForced` asks for a new one
 */
export function createDatabase(
  dataDir: string,
  { configured, isForced, now }: { configured: Uint8Array | null; isForced: boolean; now: number },
): boolean {
  const { database, masterKey: keyFile } = dataFiles(dataDir)
  if (hasDatabase(dataDir)) {
    if (!isForced) return false
    throw new StartRefused(
      `there is a database in ${dataDir} already`,
      'Leave out --new, or choose another directory with --data-dir.',
    )
  }
  const { isNew, message, remedy } = describeMissing(dataDir)
  if (!isNew && !isForced) throw new StartRefused(message, remedy)
  try {
    keepRemains(database, now)
    const hasKeyFile = configured === null && existsSync(keyFile)
    const masterKey = configured ?? (hasKeyFile ? readKeyFile(keyFile) : newMasterKey())
    const draft = writeDraft(dataDir, masterKey, now)
    if (configured === null && !hasKeyFile) writeMasterKey(keyFile, masterKey)
    renameSync(draft, database)
    fsyncPath(dataDir)
  } catch (error) {
    throw toStartError(error, dataDir)
  }
  return true
}

/** Moves away what SQLite would delete or apply to the new database. */
function keepRemains(database: string, now: number): void {
  for (const path of [database, `${database}-wal`, `${database}-shm`, `${database}-journal`])
    if (existsSync(path)) renameSync(path, `${path}.before-${fileTime(now)}`)
}

function writeDraft(dataDir: string, masterKey: Uint8Array, now: number): string {
  const { newDatabase: draft } = dataFiles(dataDir)
  for (const path of [draft, `${draft}-wal`, `${draft}-shm`]) rmSync(path, { force: true })
  // SQLite would create a file that other users can read.
  closeSync(openSync(draft, 'wx', 0o600))
  const connection = connect(draft, 0)
  try {
    bringUpToDate(connection, dataDir, { masterKey, migrate: true, now })
    // Closing does the same, but ignores an error of the disk: the file would then be renamed without its content.
    connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    connection.close()
  }
  fsyncPath(draft)
  return draft
}
