import { statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { timeInCopyName, timeInFileName, timeInSealedName } from '../backups/names.ts'
import { shellWord } from '../shared/shell-word.ts'
import { countDatabase, type BackupRows } from '../store/data-dir/backup.ts'
import { dataFiles, OperationRefused, prepareDataDir } from '../store/data-dir/data-dir.ts'
import { isLocked } from '../store/data-dir/lock.ts'
import { readMasterKey, readMasterKeyCandidates } from '../store/data-dir/master-key.ts'
import { hasDatabase } from '../store/data-dir/missing-database.ts'
import { restoreDatabase, type RestoreResult } from '../store/data-dir/restore.ts'
import { findBackup, withOpenedBackup, type BackupSource } from './backup-source.ts'
import { listOldKeys, readMasterKeyFile, requireSqlite, serverRunning, withLock, type Needs } from './data.ts'

type HostRestoreResult = RestoreResult & { file: string }

/** A backup that was found, and the database that it would replace. */
export type HostFoundBackup = {
  /** Path or address. */
  file: string
  /** When it was made, as ISO 8601; null if neither its name nor its file says so. */
  at: string | null
  bytes: number
  /** Null if they are known only once it is decrypted. */
  rows: BackupRows | null
  /** Null without a database. */
  replacedRows: BackupRows | 'unreadable' | null
}

type BackupName = {
  /** A name at the place, a path, or an address; `latest` for the newest. */
  name: string
  /** Place as in `backup.to`; undefined: that of the configuration. */
  from?: string | undefined
  cwd: string
  /** Master key of the day of the backup, if the directory does not have it. */
  masterKeyFile?: string | undefined
}

/**
 * Finds the backup that a restore would take, and compares it with the database here. It changes nothing.
 *
 * @throws OperationRefused SERVER_RUNNING, MASTER_KEY_MISSING, FILE_MISSING, NOT_ON_POSTGRES, or what the bucket says
 */
export async function findRestorable({ config }: Needs, backup: BackupName): Promise<HostFoundBackup> {
  const dataDir = requireSqlite(config, 'restore')
  const { database, lock } = dataFiles(dataDir)
  if (isLocked(lock)) throw serverRunning(dataDir)
  const present = readMasterKeyCandidates(dataDir, config.secrets.masterKey)
  if (present.length === 0) throw noMasterKey(dataDir)
  const masterKeys = [...present, ...readOldKeys(dataDir, backup)]
  const source = await findBackup({ config }, backup.name, { ...backup, dataDir, masterKeys })
  const replacedRows = hasDatabase(dataDir) ? (countDatabase(database) ?? 'unreadable') : null
  return { ...describe(source), replacedRows }
}

function describe(source: BackupSource): Omit<HostFoundBackup, 'replacedRows'> {
  const { label: file } = source
  const name = basename(file)
  const named = timeInFileName(name) ?? timeInCopyName(name) ?? timeInSealedName(name)
  if (source.kind === 'object')
    return {
      file,
      at: named === undefined ? null : toIso(named),
      bytes: source.bytes,
      rows: source.rows ?? null,
    }
  const stats = statSync(source.path, { throwIfNoEntry: false })
  if (!stats)
    throw new OperationRefused('FILE_MISSING', `there is no ${file}`, 'List what is there: otpd backup list')
  if (stats.isDirectory())
    throw new OperationRefused(
      'BACKUP_INVALID',
      `${file} is a folder`,
      `Restore the newest backup in it: otpd restore ${shellWord(join(file, 'latest'))}`,
    )
  return { file, at: toIso(named ?? stats.mtimeMs), bytes: stats.size, rows: countDatabase(source.path) }
}

const toIso = (at: number) => new Date(at).toISOString()

/**
 * Replaces the database with a backup and keeps the replaced one in `backups`. Creates the data directory if it is
 * missing, but never a master key, since only the backup's own key can read it.
 *
 * @param options.allowUnauthenticated accept a backup without an HMAC
 * @returns also the path or address of the backup
 * @throws OperationRefused SERVER_RUNNING, MASTER_KEY_MISSING, NOT_ON_POSTGRES, or as restoreDatabase and the bucket do;
 *   StartRefused
 */
export async function restore(
  needs: Needs,
  backup: BackupName,
  options: { allowUnauthenticated?: boolean | undefined } = {},
): Promise<HostRestoreResult> {
  const { config, warn = () => {}, onStep = () => {} } = needs
  const dataDir = requireSqlite(config, 'restore')
  prepareDataDir(dataDir, warn)
  return withLock(dataDir, async () => {
    if (readMasterKeyCandidates(dataDir, config.secrets.masterKey).length === 0) throw noMasterKey(dataDir)
    const masterKey = readMasterKey(dataDir, config.secrets.masterKey)
    const oldMasterKeys = readOldKeys(dataDir, backup)
    const masterKeys = [masterKey, ...oldMasterKeys]
    const source = await findBackup(needs, backup.name, { ...backup, dataDir, masterKeys })
    return withOpenedBackup(source, { dataDir, masterKeys, onStep }, ({ file, wasSealed }) => ({
      file: source.label,
      ...restoreDatabase(dataDir, file, {
        ...options,
        masterKey,
        oldMasterKeys,
        name: source.label,
        wasSealed,
        now: Date.now(),
        onStep,
      }),
    }))
  })
}

const readOldKeys = (dataDir: string, { masterKeyFile }: BackupName): Uint8Array[] => [
  ...(masterKeyFile === undefined ? [] : [readMasterKeyFile(masterKeyFile)]),
  ...listOldKeys(dataDir),
]

const noMasterKey = (dataDir: string) =>
  new OperationRefused(
    'MASTER_KEY_MISSING',
    `there is no master key at ${dataFiles(dataDir).masterKey}`,
    'Copy the master key of the backup there, or name it with OTPD_MASTER_KEY_FILE.',
  )
