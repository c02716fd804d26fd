import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Database as SqliteConnection } from 'bun:sqlite'
import { isRecord } from '../../shared/json.ts'
import type { OnStep } from '../../shared/progress.ts'
import { type Migration } from '../engine/migration-files.ts'
import { rewritesRows } from '../engine/migrations.ts'
import { computeFileMac, macFile, writeMacFile } from './backup-mac.ts'
import { copyDatabase, fsyncPath, usedBytes } from './backup.ts'
import { dataFiles, fileTime, StartRefused } from './data-dir.ts'

/** The copy of an upgrade that has not ended, and the state of the database that it was made of. */
type Attempt = { copy: string; database: string }

const attemptFile = (folder: string) => join(folder, 'before-migration.json')

/**
 * Copies the database before it is migrated. The copy gets its name only when it is complete and synced. If the upgrade is
 * interrupted, the next one uses the copy again, or replaces it if the database has changed since.
 *
 * @returns path of the copy
 * @throws StartRefused there is less free space than the upgrade needs
 */
export function copyBeforeMigration(
  connection: SqliteConnection,
  dataDir: string,
  options: {
    masterKey: Uint8Array
    now: number
    pending: readonly Migration[]
    onStep?: OnStep | undefined
  },
): string {
  const { masterKey, now, pending, onStep } = options
  const { database, backups: folder } = dataFiles(dataDir)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const draft = join(folder, 'before-migration.part')
  rmSync(draft, { force: true })
  const before = readAttempt(folder)
  const state = readFileState(connection, database)
  const isCopied =
    before !== undefined && before.database === state && isIntact(before.copy, masterKey, onStep)
  const missingSpace = findMissingSpace(dataDir, usedBytes(connection), { isCopied, pending })
  if (missingSpace) throw notEnoughSpace(missingSpace)
  if (isCopied) return before.copy

  const path = join(folder, `before-migration-${fileTime(now)}.db`)
  try {
    copyDatabase(database, draft, onStep)
    const mac = computeFileMac(draft, masterKey, onStep)
    if (before) for (const file of [macFile(before.copy), before.copy]) rmSync(file, { force: true })
    const attempt: Attempt = { copy: path, database: state ?? '' }
    writeFileSync(attemptFile(folder), JSON.stringify(attempt), { mode: 0o600 })
    writeMacFile(path, mac)
    renameSync(draft, path)
    fsyncPath(folder)
  } finally {
    rmSync(draft, { force: true })
  }
  return path
}

/** Keeps the copy of an upgrade for good, because the upgrade has ended. */
export const endUpgrade = (dataDir: string): void =>
  rmSync(attemptFile(dataFiles(dataDir).backups), { force: true })

/** A disk that has less free space than an upgrade needs. */
export type MissingSpace = { folder: string; neededBytes: number; freeBytes: number }

/**
 * Finds the disk that is too small for an upgrade. It writes a copy; rows that a migration changes take their space twice
 * more, in the write-ahead log and in the file.
 *
 * @param used bytes of the database that hold data
 * @returns null if there is enough space
 */
export function findMissingSpace(
  dataDir: string,
  used: number,
  { isCopied = false, pending }: { isCopied?: boolean; pending: readonly Migration[] },
): MissingSpace | null {
  const { backups } = dataFiles(dataDir)
  const copy = isCopied ? 0 : used
  const migration = Math.ceil(used * (rewritesRows(pending) ? 2 : 0.1))
  const isOneDisk = !existsSync(backups) || statSync(dataDir).dev === statSync(backups).dev
  const needs: Array<[folder: string, bytes: number]> = isOneDisk
    ? [[dataDir, copy + migration]]
    : [
        [backups, copy],
        [dataDir, migration],
      ]
  for (const [folder, neededBytes] of needs) {
    const { bavail, bsize } = statfsSync(folder)
    const freeBytes = bavail * bsize
    if (freeBytes < neededBytes) return { folder, neededBytes, freeBytes }
  }
  return null
}

const notEnoughSpace = ({ folder, neededBytes, freeBytes }: MissingSpace) =>
  new StartRefused(
    `the upgrade needs ${megabytes(neededBytes)} of free space in ${folder}, and there are ${megabytes(freeBytes)}`,
    'Make room on that disk: older backups may lie elsewhere. Nothing was changed, and the older otpd still runs on this database.',
  )

const megabytes = (bytes: number) => `${Math.ceil(bytes / 1e6)} MB`

/** Identifies the content of the file by what changes with it; undefined if commits are in the write-ahead log only. */
function readFileState(connection: SqliteConnection, database: string): string | undefined {
  connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
  if ((statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) return undefined
  const { ino, size, mtimeNs } = statSync(database, { bigint: true })
  return `${ino} ${size} ${mtimeNs}`
}

function readAttempt(folder: string): Attempt | undefined {
  try {
    const attempt: unknown = JSON.parse(readFileSync(attemptFile(folder), 'utf8'))
    if (!isRecord(attempt)) return undefined
    const { copy, database } = attempt
    return typeof copy === 'string' && typeof database === 'string' ? { copy, database } : undefined
  } catch {
    return undefined
  }
}

/** Tells whether a copy is as it was made, by its HMAC. */
function isIntact(copy: string, masterKey: Uint8Array, onStep?: OnStep): boolean {
  try {
    return computeFileMac(copy, masterKey, onStep) === readFileSync(macFile(copy), 'utf8').trim()
  } catch {
    return false
  }
}
