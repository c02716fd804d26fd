import { createHash } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readSync, rmdirSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Bucket } from '../backups/bucket.ts'
import { listFolder, removeOldDrafts } from '../backups/folder.ts'
import { backupFileName } from '../backups/names.ts'
import { chooseLatest } from '../backups/choices.ts'
import type { BackupTarget } from '../config/backup.ts'
import type { OnStep } from '../shared/progress.ts'
import { checkFileMac } from '../store/data-dir/backup-mac.ts'
import { checkAndCount, draftFile, type BackupRows } from '../store/data-dir/backup.ts'
import { dataFiles, OperationRefused, systemErrorCode } from '../store/data-dir/data-dir.ts'
import { folderOf, loadRemote, openTarget, parseTarget, requireFolder, type BackupNeeds } from './backups.ts'
import { explainCode } from '../shared/error-cause.ts'

export type HostVerifiedBackup = { file: string; bytes: number; rows: BackupRows }

/** A backup that a person named: a file of this machine, or an object. */
export type BackupSource =
  | { kind: 'file'; path: string; label: string }
  | {
      kind: 'object'
      bucket: Bucket
      name: string
      bytes: number
      label: string
      rows?: BackupRows | undefined
    }

/**
 * Finds the backup that a person named: a path, `s3://BUCKET/PREFIX/NAME`, a name at a place, or `latest` at any of
 * these, which is the newest that verified and that one of the keys opens.
 *
 * @param options.from place of the name; undefined: that of the configuration
 * @throws OperationRefused PLACE_INVALID, FILE_MISSING, or what the bucket says
 */
export async function findBackup(
  { config }: BackupNeeds,
  text: string,
  options: { dataDir: string; cwd: string; masterKeys: readonly Uint8Array[]; from?: string | undefined },
): Promise<BackupSource> {
  const { dataDir, cwd, masterKeys, from } = options
  if (from !== undefined) return findAt(parseTarget(from, cwd), text)
  if (/^s3:/i.test(text)) {
    const [, place = '', name = ''] = /^(s3:\/\/.+)\/([^/]+)$/i.exec(text) ?? []
    const target = parseTarget(place === '' ? text : place, cwd)
    if (target.kind !== 's3' || name === '')
      throw new OperationRefused(
        'PLACE_INVALID',
        `${text} names no backup`,
        'Add its name, or latest: s3://BUCKET/PREFIX/latest.',
      )
    return findObject(await openTarget(target, config), name, masterKeys)
  }
  const path = resolve(cwd, text)
  if (existsSync(path)) return fileSource(path)
  if (!text.includes('/')) return findAt(config.backup.to, text)
  return basename(path) === 'latest'
    ? fileSource(findInFolder(dirname(path), 'latest', masterKeys))
    : fileSource(path)

  async function findAt(target: BackupTarget, name: string): Promise<BackupSource> {
    return target.kind === 's3'
      ? findObject(await openTarget(target, config), name, masterKeys)
      : fileSource(findInFolder(folderOf(target, dataDir), name, masterKeys))
  }
}

const fileSource = (path: string): BackupSource => ({ kind: 'file', path, label: path })

function findInFolder(folder: string, name: string, masterKeys: readonly Uint8Array[]): string {
  if (name !== 'latest') return join(folder, name)
  requireFolder(folder)
  const found = listFolder(folder, masterKeys)
  const latest = chooseLatest(found)
  if (latest) return join(folder, latest.name)
  throw noBackups(folder, found.length)
}

async function findObject(
  bucket: Bucket,
  name: string,
  masterKeys: readonly Uint8Array[],
): Promise<BackupSource> {
  const found = ({
    name,
    bytes,
    rows,
  }: {
    name: string
    bytes: number
    rows?: BackupRows | undefined
  }): BackupSource => ({
    kind: 'object',
    bucket,
    name,
    bytes,
    rows,
    label: `${bucket.label}/${name}`,
  })
  if (name === 'latest') {
    const { listBucket } = await loadRemote()
    const stored = await listBucket(bucket, masterKeys)
    const latest = chooseLatest(stored)
    if (latest) return found(latest)
    throw noBackups(bucket.label, stored.length)
  }
  const object = (await bucket.list()).find((one) => one.name === name)
  if (object) return found(object)
  throw new OperationRefused(
    'FILE_MISSING',
    `there is no ${bucket.label}/${name}`,
    `List what is there: otpd backup list --from ${bucket.label}`,
  )
}

/** @param others backups that are not verified, or that these master keys do not open */
const noBackups = (place: string, others: number) =>
  others === 0
    ? new OperationRefused(
        'FILE_MISSING',
        `there is no backup in ${place}`,
        'Name another place with --from, or the path of a file.',
      )
    : new OperationRefused(
        'FILE_MISSING',
        `there is no verified backup of this master key in ${place}`,
        `List what is there: otpd backup list --from ${place}. One of an earlier master key needs --master-key-file FILE.`,
      )

/**
 * Runs `work` on the database of a backup. One that is sealed is downloaded and opened into the data directory's
 * `backups` for that time.
 *
 * @throws OperationRefused FILE_MISSING, BACKUP_INVALID, BACKUP_OF_ANOTHER_KEY, BACKUP_FORGED, FILE_NOT_WRITABLE
 */
export async function withOpenedBackup<T>(
  source: BackupSource,
  needs: { dataDir: string; masterKeys: readonly Uint8Array[]; onStep: OnStep },
  work: (opened: { file: string; wasSealed: boolean }) => T | Promise<T>,
): Promise<T> {
  const { dataDir, masterKeys, onStep } = needs
  if (source.kind === 'file' && !(await isSealedFile(source.path)))
    return work({ file: source.path, wasSealed: false })
  const folder = dataFiles(dataDir).backups
  const made = mkdirSync(folder, { recursive: true, mode: 0o700 })
  removeOldDrafts(folder, Date.now())
  const file = draftFile(join(folder, backupFileName(Date.now())))
  try {
    const { fetchSealedBackup, openSealedFile } = await loadRemote()
    if (source.kind === 'file') await openSealedFile(source.path, masterKeys, { file, onStep })
    else await fetchSealedBackup(source.bucket, source, masterKeys, { file, onStep })
    return await work({ file, wasSealed: true })
  } finally {
    rmSync(file, { force: true })
    if (made !== undefined) removeEmptyFolders(folder, made)
  }
}

/** Removes folders that were made for a draft, and stay empty. */
function removeEmptyFolders(folder: string, topmost: string) {
  for (let path = folder; path.startsWith(topmost) && readdirSync(path).length === 0; path = dirname(path))
    rmdirSync(path)
}

async function isSealedFile(path: string): Promise<boolean> {
  const { headerBytes, isSealedBackup } = await import('../backups/sealed-format.ts')
  let file: number
  try {
    file = openSync(path, 'r')
  } catch {
    // Opening it again below says why it cannot be read.
    return false
  }
  try {
    const start = Buffer.alloc(headerBytes)
    return isSealedBackup(start.subarray(0, readSync(file, start)))
  } catch {
    return false
  } finally {
    closeSync(file)
  }
}

/**
 * Reads a backup to its end, checks it as a restore does, and counts it. A sealed one in a bucket then counts as verified,
 * or no longer.
 *
 * @throws OperationRefused as `withOpenedBackup`; BACKUP_NOT_AUTHENTICATED
 */
export async function verifySource(
  source: BackupSource,
  needs: { dataDir: string; masterKeys: readonly Uint8Array[]; onStep: OnStep },
): Promise<HostVerifiedBackup> {
  const { masterKeys, onStep } = needs
  try {
    return await withOpenedBackup(source, needs, async ({ file, wasSealed }) => {
      if (!wasSealed) requireMac(file, masterKeys, onStep)
      const rows = checkAndCount(file, source.label, onStep)
      if (source.kind === 'object') await noteVerified(source, { file, rows, masterKeys })
      const bytes = source.kind === 'object' ? source.bytes : Bun.file(source.path).size
      return { file: source.label, bytes, rows }
    })
  } catch (error) {
    const isBad = error instanceof OperationRefused && /^BACKUP_(FORGED|INVALID)$/.test(error.reason)
    if (isBad && source.kind === 'object') {
      const { forgetNote } = await loadRemote()
      await forgetNote(source.bucket, source.name)
    }
    throw error
  }
}

async function noteVerified(
  { bucket, name, bytes }: Extract<BackupSource, { kind: 'object' }>,
  { file, rows, masterKeys }: { file: string; rows: BackupRows; masterKeys: readonly Uint8Array[] },
) {
  const { writeNote } = await loadRemote()
  const hash = createHash('sha256')
  for await (const chunk of Bun.file(file).stream()) hash.update(chunk)
  const [masterKey] = masterKeys
  if (masterKey) await writeNote(bucket, name, masterKey, { bytes, sha256: hash.digest('hex'), rows })
}

function requireMac(file: string, masterKeys: readonly Uint8Array[], onStep: OnStep) {
  if (!existsSync(file))
    throw new OperationRefused('FILE_MISSING', `there is no ${file}`, 'List what is there: otpd backup list')
  let check: ReturnType<typeof checkFileMac>
  try {
    check = checkFileMac(file, masterKeys, { onStep })
  } catch (error) {
    throw new OperationRefused(
      'FILE_NOT_READABLE',
      `${file} cannot be read (${explainCode(systemErrorCode(error))})`,
      'Check the permissions of the file.',
      error,
    )
  }
  if (check === 'matches') return
  throw check === 'wrong'
    ? new OperationRefused(
        'BACKUP_FORGED',
        `${file} does not match its HMAC in ${file}.hmac`,
        'It was changed or cut, or made with another master key. Choose another backup: otpd backup list',
      )
    : new OperationRefused(
        'BACKUP_NOT_AUTHENTICATED',
        `there is no ${file}.hmac, which proves that the backup is unchanged`,
        'Copy it along.',
      )
}
