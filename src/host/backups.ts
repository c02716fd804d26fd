import { existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { listFolder, removeFromFolder, removeOldDrafts } from '../backups/folder.ts'
import { readLastBackup, writeLastBackup, type LastBackup } from '../backups/last-backup.ts'
import { backupFileName, timeInCopyName } from '../backups/names.ts'
import { choosePruned, type StoredBackup } from '../backups/choices.ts'
import { parseBackupTarget, showEvery, showTarget, type BackupTarget } from '../config/backup.ts'
import type { Config } from '../config/config.ts'
import type { OnStep } from '../shared/progress.ts'
import { backUpDatabase, type Backup } from '../store/data-dir/backup.ts'
import { dataFiles, OperationRefused } from '../store/data-dir/data-dir.ts'
import { listKeptKeys, readMasterKeyCandidates } from '../store/data-dir/master-key.ts'
import { requireDatabase } from '../store/data-dir/missing-database.ts'

export type HostBackup = Backup & { pruned: string[] }
type HostStoredBackup = Omit<StoredBackup, 'at'> & { at: string }
export type HostBackupList = { place: string; backups: HostStoredBackup[] }

/** Needs of the host commands on backups. */
export type BackupNeeds = { config: Config; onStep?: OnStep | undefined }

/** Loads what talks to S3 services only where a bucket is used. */
export const loadRemote = async () => ({
  ...(await import('../backups/bucket.ts')),
  ...(await import('../backups/sealed.ts')),
})

export async function openTarget(target: Extract<BackupTarget, { kind: 's3' }>, { backup, secrets }: Config) {
  const { openBucket } = await loadRemote()
  return openBucket(target, { settings: backup.s3, secrets: secrets.s3 })
}

/** Folder of a target, which is the data directory's own if it names none. */
export const folderOf = ({ path }: Extract<BackupTarget, { kind: 'folder' }>, dataDir: string) =>
  path ?? dataFiles(dataDir).backups

/**
 * Makes a backup at the place of the configuration, and records it in the data directory.
 *
 * @param prune delete all but the newest that verified
 * @throws OperationRefused FILE_NOT_WRITABLE, NO_DATABASE, DATABASE_DAMAGED, or what the bucket says
 */
export async function backUpToTarget(
  { config, onStep = () => {} }: BackupNeeds,
  { dataDir, masterKey, prune }: { dataDir: string; masterKey: Uint8Array; prune: boolean },
): Promise<HostBackup> {
  requireDatabase(dataDir)
  const { database, backups: ownFolder } = dataFiles(dataDir)
  const { to, keep } = config.backup
  const now = Date.now()
  mkdirSync(ownFolder, { recursive: true, mode: 0o700 })
  removeOldDrafts(ownFolder, now)
  // Before the pruning, which may fail: the backup is there, and the next one is due later.
  const record = ({ file, bytes }: Backup) => writeLastBackup(dataDir, { file, at: now, bytes })
  let backup: Backup
  let pruned: string[] = []
  if (to.kind === 's3') {
    const bucket = await openTarget(to, config)
    const { listBucket, removeFromBucket, sendSealedBackup } = await loadRemote()
    backup = await sendSealedBackup(bucket, { database, folder: ownFolder, masterKey, now, onStep })
    record(backup)
    if (prune) {
      const old = choosePruned(await listBucket(bucket, [masterKey]), keep, now)
      for (const one of old) await removeFromBucket(bucket, one)
      pruned = old.map(({ name }) => name)
    }
  } else {
    const folder = folderOf(to, dataDir)
    // Made here, it could be the place where a disk is to be mounted.
    if (!existsSync(folder))
      throw new OperationRefused(
        'FILE_NOT_WRITABLE',
        `there is no folder ${folder}`,
        'Mount or create it, or correct backup.to.',
      )
    removeOldDrafts(folder, now)
    backup = await backUpDatabase(database, join(folder, backupFileName(now)), masterKey, onStep)
    record(backup)
    if (prune) {
      const old = choosePruned(listFolder(folder, [masterKey]), keep, now)
      for (const one of old) removeFromFolder(folder, one)
      pruned = old.map(({ name }) => name)
    }
  }
  return { ...backup, pruned }
}

/**
 * Lists backups, newest first, with the copies that upgrades made and the databases that restores replaced. Those lie in the
 * data directory, and have their path as name if backups are kept elsewhere. They are not pruned, and never `latest`.
 *
 * @param from place as in `backup.to`; undefined: that of the configuration
 * @throws OperationRefused PLACE_INVALID, FILE_NOT_READABLE, or what the bucket says
 */
export async function listStoredBackups(
  { config }: BackupNeeds,
  { dataDir, from, cwd }: { dataDir: string; from: string | undefined; cwd: string },
): Promise<HostBackupList> {
  const target = from === undefined ? config.backup.to : parseTarget(from, cwd)
  const masterKeys = [
    ...readMasterKeyCandidates(dataDir, config.secrets.masterKey),
    ...listKeptKeys(dataDir).map(({ key }) => key),
  ]
  const ownFolder = dataFiles(dataDir).backups
  const folder = target.kind === 'folder' ? folderOf(target, dataDir) : null
  const listCopies = (place: string) => listFolder(place, masterKeys, timeInCopyName)
  const list = async (): Promise<StoredBackup[]> => {
    if (target.kind === 'folder') {
      if (target.path !== null) requireFolder(target.path)
      const listed = folderOf(target, dataDir)
      return [...listFolder(listed, masterKeys), ...listCopies(listed)]
    }
    const { listBucket } = await loadRemote()
    return listBucket(await openTarget(target, config), masterKeys)
  }
  const ownCopies = from === undefined && folder !== ownFolder ? listCopies(ownFolder) : []
  const copiesElsewhere = ownCopies.map((copy) => ({ ...copy, name: join(ownFolder, copy.name) }))
  const backups = [...(await list()), ...copiesElsewhere].toSorted((a, b) => b.at - a.at)
  return {
    place: showTarget(target) ?? ownFolder,
    backups: backups.map((backup) => ({ ...backup, at: new Date(backup.at).toISOString() })),
  }
}

/** @throws OperationRefused FILE_MISSING the folder is not there */
export function requireFolder(folder: string): void {
  if (existsSync(folder)) return
  throw new OperationRefused(
    'FILE_MISSING',
    `there is no folder ${folder}`,
    'Mount it, or name another place in backup.to or with --from.',
  )
}

/** Parses a place that a person named. @throws OperationRefused PLACE_INVALID */
export function parseTarget(text: string, cwd: string): BackupTarget {
  // As from a shell variable that is not set; it would be the folder of the caller.
  if (text === '')
    throw new OperationRefused('PLACE_INVALID', 'no place is named', 'Use a folder, or s3://BUCKET/PREFIX.')
  const parsed = parseBackupTarget(text, cwd)
  if ('value' in parsed) return parsed.value
  throw new OperationRefused('PLACE_INVALID', `${text}: ${parsed.fault.replace(/\.$/, '')}`, parsed.remedy)
}

/** Schedule and last backup of a data directory, as `otpd doctor` reports them. */
export type BackupInspection = {
  /** The interval of the schedule as in the setting; null without one. */
  every: string | null
  everyMs: number | null
  last: LastBackup | null
  /** Folder of the backups, if it is on the disk of the data. */
  onDataDisk: string | null
  /** Folder that the configuration names, if it is not there. */
  missingFolder: string | null
}

/** Inspects the backups of a data directory without a call to a service. Never throws. */
export function inspectBackups(
  { backup: { everyMs, to } }: Pick<Config, 'backup'>,
  dataDir: string,
): BackupInspection {
  const folder = to.kind === 'folder' ? folderOf(to, dataDir) : null
  const device = (path: string) => {
    try {
      return statSync(path).dev
    } catch {
      return undefined
    }
  }
  const isOnDataDisk = folder !== null && device(folder) !== undefined && device(folder) === device(dataDir)
  return {
    every: everyMs === null ? null : showEvery(everyMs),
    everyMs,
    last: readLastBackup(dataDir),
    onDataDisk: isOnDataDisk ? folder : null,
    missingFolder: to.kind === 'folder' && to.path !== null && !existsSync(to.path) ? to.path : null,
  }
}
