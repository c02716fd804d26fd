import { randomUUID } from 'node:crypto'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { isRecord } from '../shared/json.ts'
import { readRegularFile } from '../shared/regular-file.ts'
import { dataFiles } from '../store/data-dir/data-dir.ts'

/** The last backup that went to the place of the configuration, by the server or by hand. */
export type LastBackup = {
  /** Path or address. */
  file: string
  /** Milliseconds since the epoch. */
  at: number
  bytes: number
}

/** Reads what the last backup left in the data directory; null without one. */
export function readLastBackup(dataDir: string): LastBackup | null {
  try {
    const record: unknown = JSON.parse(readRegularFile(dataFiles(dataDir).lastBackup).toString())
    if (!isRecord(record)) return null
    const { file, at, bytes } = record
    return typeof file === 'string' && typeof at === 'number' && typeof bytes === 'number'
      ? { file, at, bytes }
      : null
  } catch {
    return null
  }
}

/** Records a finished backup. Readers see the one before or this one. */
export function writeLastBackup(dataDir: string, backup: LastBackup): void {
  const path = dataFiles(dataDir).lastBackup
  const draft = `${path}.${randomUUID()}`
  try {
    writeFileSync(draft, JSON.stringify(backup), { mode: 0o600, flag: 'wx' })
    renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}
