import { closeSync, existsSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { masterKeyCheck } from '../domain/model/keys.ts'
import { hourMs } from '../shared/durations.ts'
import { macFile } from '../store/data-dir/backup-mac.ts'
import { withReadonlyConnection } from '../store/data-dir/backup.ts'
import { OperationRefused, systemErrorCode } from '../store/data-dir/data-dir.ts'
import { listMasterKeyChecks } from '../store/data-dir/data-keys.ts'
import { isDraftName, timeInFileName } from './names.ts'
import { headerBytes, isSealedBackup, keyCheckIn } from './sealed-format.ts'
import type { StoredBackup } from './choices.ts'
import { explainCode } from '../shared/error-cause.ts'

/** A draft that was not written to for so long is that of a process that was killed. */
const draftMsMax = hourMs

/**
 * Lists the backups of a folder.
 *
 * @param masterKeys the keys at hand, which tell this installation's backups from others
 * @param timeInName reads the time from the names that count
 * @throws OperationRefused FILE_NOT_READABLE
 */
export function listFolder(
  folder: string,
  masterKeys: readonly Uint8Array[],
  timeInName = timeInFileName,
): StoredBackup[] {
  const checks = masterKeys.map(masterKeyCheck)
  return namesIn(folder).flatMap((name): StoredBackup[] => {
    const at = timeInName(name)
    const path = join(folder, name)
    const stats = statSync(path, { throwIfNoEntry: false })
    if (at === undefined || !stats?.isFile()) return []
    const state = !readKeyChecks(path).some((check) => checks.includes(check))
      ? 'another key'
      : existsSync(macFile(path))
        ? 'verified'
        : 'unverified'
    return [{ name, at, bytes: stats.size, state }]
  })
}

/**
 * Deletes a backup. Its HMAC goes first: without it a backup no longer counts as verified.
 *
 * @throws OperationRefused FILE_NOT_WRITABLE
 */
export function removeFromFolder(folder: string, { name }: StoredBackup): void {
  const path = join(folder, name)
  try {
    rmSync(macFile(path), { force: true })
    rmSync(path, { force: true })
  } catch (error) {
    throw new OperationRefused(
      'FILE_NOT_WRITABLE',
      `the old backup ${path} cannot be deleted (${explainCode(systemErrorCode(error))})`,
      'Check the permissions of the folder. The new backup is complete.',
      error,
    )
  }
}

/** Deletes drafts that killed processes left. */
export function removeOldDrafts(folder: string, now: number): void {
  for (const name of namesIn(folder).filter(isDraftName)) {
    const stats = statSync(join(folder, name), { throwIfNoEntry: false })
    if (stats && stats.mtimeMs < now - draftMsMax) rmSync(join(folder, name), { force: true })
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT') return []
    throw new OperationRefused(
      'FILE_NOT_READABLE',
      `${folder} cannot be read (${explainCode(code)})`,
      'Check the permissions of the folder.',
      error,
    )
  }
}

/**
 * Lists the backups of a folder, those that otpd did not name included, with the checks of the master keys that open
 * them.
 *
 * @returns null if the folder cannot be read
 */
export function listKeyChecks(folder: string): Array<{ name: string; checks: string[] }> | null {
  try {
    return namesIn(folder)
      .filter((name) => /\.(db|sealed)$/.test(name))
      .toSorted()
      .map((name) => ({ name, checks: readKeyChecks(join(folder, name)) }))
  } catch {
    return null
  }
}

/** Reads the checks of the master keys that open a backup; none if it is not a backup, or cannot be read. */
function readKeyChecks(path: string): string[] {
  try {
    return readSealedCheck(path) ?? withReadonlyConnection(path, listMasterKeyChecks)
  } catch {
    return []
  }
}

function readSealedCheck(path: string): string[] | null {
  const file = openSync(path, 'r')
  try {
    const start = Buffer.alloc(headerBytes)
    return readSync(file, start) === headerBytes && isSealedBackup(start) ? [keyCheckIn(start)] : null
  } finally {
    closeSync(file)
  }
}
