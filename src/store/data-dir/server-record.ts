import { existsSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { isRecord } from '../../shared/json.ts'
import { dataFiles } from './data-dir.ts'
import { acquireLock, cannotWrite, isLocked, type Lock } from './lock.ts'

// A server describes itself in a file of its data directory. Only the holder of the directory's lock writes the file,
// and each holder first removes that of the one before: so a file next to a held lock is that of the holder, also after
// a kill, when the operating system has released the lock.

/**
 * Locks a data directory as `acquireLock` does, and removes what a process that was killed said about itself.
 *
 * @param waitMs how long to wait for another process to release it
 * @returns undefined if another process holds it
 * @throws StartRefused the lock file cannot be written, or the record cannot be removed
 */
export function lockDataDir(dataDir: string, waitMs = 0): Lock | undefined {
  const { lock, serverRecord } = dataFiles(dataDir)
  const held = acquireLock(lock, waitMs)
  try {
    // Not `rmSync`, which reports some system errors as EFAULT.
    if (held && existsSync(serverRecord)) unlinkSync(serverRecord)
    return held
  } catch (error) {
    held?.release()
    throw cannotWrite(serverRecord, error)
  }
}

/** Writes the record of the server that holds the lock, for its owner only. Readers see the old one or the new one. */
export function writeServerRecord(dataDir: string, record: unknown): void {
  const path = dataFiles(dataDir).serverRecord
  const draft = `${path}.new`
  rmSync(draft, { force: true })
  writeFileSync(draft, JSON.stringify(record), { mode: 0o600, flag: 'wx' })
  renameSync(draft, path)
}

/** How far the upgrade is that keeps a server from starting. */
export type UpgradeProgress = { step: string; percent: number; remainingSeconds?: number }

/** Writes the progress of an upgrade in the place of the server's record. */
export const writeUpgradeProgress = (dataDir: string, upgrade: UpgradeProgress): void =>
  writeServerRecord(dataDir, { upgrade })

/** Reads the progress of an upgrade that is under way; null if there is none. */
export function readUpgradeProgress(dataDir: string): UpgradeProgress | null {
  const record = readServerRecord(dataDir)
  const upgrade = isRecord(record) && isRecord(record.upgrade) ? record.upgrade : {}
  const { step, percent, remainingSeconds } = upgrade
  if (typeof step !== 'string' || typeof percent !== 'number') return null
  return { step, percent, ...(typeof remainingSeconds === 'number' && { remainingSeconds }) }
}

/** Removes the record, before the lock is released. */
export const removeServerRecord = (dataDir: string): void =>
  rmSync(dataFiles(dataDir).serverRecord, { force: true })

/** Reads the record of the running server; undefined if none is running, or this user may not read it. */
export function readServerRecord(dataDir: string): unknown {
  const { lock, serverRecord } = dataFiles(dataDir)
  try {
    return isLocked(lock) ? JSON.parse(readFileSync(serverRecord, 'utf8')) : undefined
  } catch {
    return undefined
  }
}
