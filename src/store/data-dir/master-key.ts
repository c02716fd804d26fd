import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { Database as SqliteConnection } from 'bun:sqlite'
import { masterKeyBytes, masterKeyCheck } from '../../domain/model/keys.ts'
import { decodeMasterKey } from '../../domain/model/master-key-text.ts'
import { fsyncPath } from './backup.ts'
import { dataFiles, fileTime, requirePrivate, StartRefused, systemErrorCode } from './data-dir.ts'
import { findMasterKey, listMasterKeyChecks, noMasterKeyOpens } from './data-keys.ts'
import { hasDatabase } from './missing-database.ts'
import { readRegularFile } from '../../shared/regular-file.ts'
import { transact } from '../sqlite/transact.ts'

/**
 * Returns the configured master key, or the data directory's. Completes the replacement of the key file if that was
 * interrupted.
 *
 * @throws StartRefused the key file is missing, is readable by other users, or holds no key
 */
export function readMasterKey(dataDir: string, configured: Uint8Array | null): Uint8Array {
  if (configured) return configured
  const files = dataFiles(dataDir)
  if (existsSync(files.newMasterKey)) finishInterruptedReplacement(dataDir)
  if (!existsSync(files.masterKey)) {
    throw new StartRefused(
      `the master key ${files.masterKey} is missing, and the database was created with it`,
      'Restore it, or point OTPD_MASTER_KEY_FILE to it. Nothing else opens the database and its backups.',
    )
  }
  return readKeyFile(files.masterKey)
}

/**
 * Reads the master keys that may open the database, changing nothing: the configured one, or the key file and the new one
 * that is to replace it.
 *
 * @throws StartRefused a key file is readable by other users, or holds no key
 */
export function readMasterKeyCandidates(dataDir: string, configured: Uint8Array | null): Uint8Array[] {
  if (configured) return [configured]
  const { masterKey, newMasterKey } = dataFiles(dataDir)
  // The new file first: if it is renamed meanwhile, the other name has it.
  const newKey = tryReadKeyFile(newMasterKey)
  return [...(existsSync(masterKey) ? [readKeyFile(masterKey)] : []), ...(newKey ? [newKey] : [])]
}

/** @returns undefined if there is none, or one that a crash has cut short */
function tryReadKeyFile(path: string): Uint8Array | undefined {
  try {
    return readKeyFile(path)
  } catch {
    return undefined
  }
}

/** Reads a key file. @throws StartRefused it is readable by other users, or holds no key */
export function readKeyFile(path: string): Uint8Array {
  const key = decodeMasterKey(readKeyText(path).trim())
  requirePrivate(path)
  if (key) return key
  throw noMasterKeyIn(path)
}

/** @throws StartRefused it is no file, such as the folder that Docker makes where a file to mount is missing */
function readKeyText(path: string): string {
  try {
    return readRegularFile(path).toString()
  } catch (error) {
    const code = systemErrorCode(error)
    throw ['EISDIR', 'ENOTREG', 'EFBIG'].includes(code) ? noMasterKeyIn(path) : error
  }
}

const noMasterKeyIn = (path: string) =>
  new StartRefused(
    `${path} does not hold a master key`,
    'Restore the right file: 32 bytes in base64 or hexadecimal.',
  )

/** Makes a master key. */
export const newMasterKey = (): Uint8Array => randomBytes(masterKeyBytes)

/** Writes the key file that a directory does not have yet, whole or not at all. */
export function writeMasterKey(path: string, key: Uint8Array): void {
  const draft = `${path}.${process.pid}`
  rmSync(draft, { force: true })
  writeKeyFile(draft, key)
  renameSync(draft, path)
  fsyncPath(dirname(path))
}

/** Writes a key file that does not exist yet, private and synced. */
export function writeKeyFile(path: string, key: Uint8Array): void {
  const file = openSync(path, 'wx', 0o600)
  writeSync(file, `${Buffer.from(key).toString('base64')}\n`)
  fsyncSync(file)
  closeSync(file)
  fsyncPath(dirname(path))
}

/**
 * Decides about `master.key.new`: it becomes the key file if the database has changed to it, and is deleted otherwise.
 * The caller holds the write lock of the database, so no replacement is under way.
 */
export function settleNewMasterKey(connection: SqliteConnection, dataDir: string): void {
  const { masterKey, newMasterKey } = dataFiles(dataDir)
  if (!existsSync(newMasterKey)) return
  if (isKeyOf(connection, newMasterKey)) {
    if (existsSync(masterKey)) keepOldKey(masterKey, statSync(newMasterKey).mtimeMs)
    renameSync(newMasterKey, masterKey)
  }
  // Cut short before the database changed: the file in use is still right, or the replacement was not ours to judge.
  else if (existsSync(masterKey) && isKeyOf(connection, masterKey)) rmSync(newMasterKey)
  fsyncPath(dataDir)
}

/** A master key that was replaced, and that backups of its time need. */
type KeptKey = { path: string; key: Uint8Array }

/** Lists the replaced master keys of a data directory that this user can read, newest first. */
export const listKeptKeys = (dataDir: string): KeptKey[] =>
  listKeptKeyPaths(dataDir).flatMap((path) => {
    const key = tryReadKeyFile(path)
    return key ? [{ path, key }] : []
  })

/** Lists the files of replaced master keys, newest first. */
export function listKeptKeyPaths(dataDir: string): string[] {
  const names = existsSync(dataDir) ? readdirSync(dataDir) : []
  return names
    .filter((name) => name.startsWith('master.key.before-'))
    .toSorted()
    .toReversed()
    .map((name) => join(dataDir, name))
}

/**
 * Copies the master key that is replaced, unless a replacement that was interrupted has done so.
 *
 * @param at when the new key was made
 */
function keepOldKey(masterKey: string, at: number): void {
  const key = readKeyFile(masterKey)
  for (let name = at; ; name++) {
    const path = join(dirname(masterKey), `master.key.before-${fileTime(name)}`)
    if (!existsSync(path)) return writeMasterKey(path, key)
    if (Buffer.compare(readKeyFile(path), key) === 0) return
  }
}

/** Tells whether a file holds a master key of the database; a half-written file does not. */
function isKeyOf(connection: SqliteConnection, path: string): boolean {
  const key = decodeMasterKey(readFileSync(path, 'utf8').trim())
  return key !== undefined && findMasterKey(connection, [key]) !== undefined
}

function finishInterruptedReplacement(dataDir: string): void {
  if (!hasDatabase(dataDir)) return
  const { database } = dataFiles(dataDir)
  const connection = new SqliteConnection(database)
  try {
    connection.run('PRAGMA busy_timeout = 5000')
    transact(connection, () => settleNewMasterKey(connection, dataDir))
  } finally {
    connection.close()
  }
}

/**
 * Requires that a master key opens the database, which may be new.
 *
 * @throws StartRefused the key is a different one: codes and client IDs would silently become invalid
 */
export function requireMasterKey(connection: SqliteConnection, masterKey: Uint8Array): void {
  const checks = listMasterKeyChecks(connection)
  if (checks.length === 0 || checks.includes(masterKeyCheck(masterKey))) return
  throw noMasterKeyOpens([masterKey])
}
