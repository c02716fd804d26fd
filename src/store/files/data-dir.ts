import { randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { masterKeyBytes } from '../../domain/model/keys.ts'

/** Why otpd does not start on this data directory, and what to do about it. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused'
  readonly remedy: string

  constructor(message: string, remedy: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.remedy = remedy
  }
}

/** Why a command of the operator's does nothing, as a sentence, a word for scripts, and what to do about it. */
export class OperationRefused extends Error {
  override readonly name = 'OperationRefused'
  readonly reason: string
  readonly remedy: string

  constructor(reason: string, message: string, remedy: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.reason = reason
    this.remedy = remedy
  }
}

/** Where everything lies. */
export const dataFiles = (dataDir: string) => ({
  database: join(dataDir, 'otpd.db'),
  lock: join(dataDir, 'otpd.lock'),
  masterKey: join(dataDir, 'master.key'),
  backups: join(dataDir, 'backups'),
  setupToken: join(dataDir, 'setup-token'),
})

/**
 * Makes the directory if it is missing, and closes it to others.
 *
 * @param warn told where it belongs to somebody else and stays open
 * @throws StartRefused
 */
export function prepareDataDir(dataDir: string, warn: (message: string) => void): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const { mode, uid } = statSync(dataDir)
    const isExposed = (mode & 0o077) !== 0
    if (isExposed && uid === process.getuid?.()) chmodSync(dataDir, 0o700)
    else if (isExposed) warn(`others can read ${dataDir}. Close it: chmod 700 ${dataDir}`)
    const { database, lock } = dataFiles(dataDir)
    for (const path of [dataDir, lock, database]) if (existsSync(path)) accessSync(path, constants.W_OK)
  } catch (error) {
    throw new StartRefused(
      `the data directory ${dataDir} cannot be used (${errorWord(error)})`,
      'Choose another one with --data-dir, or make it and its files writable for this user.',
      error,
    )
  }
}

/** @throws StartRefused others can read a file that only its owner may */
export function requirePrivate(path: string): void {
  if (!existsSync(path) || (statSync(path).mode & 0o077) === 0) return
  throw new StartRefused(`others can read ${path}`, `Close it: chmod 600 ${path}`)
}

/**
 * The master key: the configured one, or the one of the directory, made at the first start.
 *
 * @throws StartRefused the file is missing beside a database that was made with it, or is not a key
 */
export function readMasterKey(dataDir: string, configured: Uint8Array | null): Uint8Array {
  if (configured) return configured
  const files = dataFiles(dataDir)
  if (!existsSync(files.masterKey)) {
    if (existsSync(files.database)) {
      throw new StartRefused(
        `the master key ${files.masterKey} is missing, and the database was made with it`,
        'Put it back, or name it with OTPD_MASTER_KEY_FILE. Without it client IDs and pending codes are lost.',
      )
    }
    makeMasterKey(files.masterKey)
  }
  requirePrivate(files.masterKey)
  const key = Buffer.from(readFileSync(files.masterKey, 'utf8').trim(), 'base64')
  if (key.length === masterKeyBytes) return key
  throw new StartRefused(
    `${files.masterKey} does not hold a master key`,
    'Put the right file back; it holds 32 bytes in base64.',
  )
}

/** Of two processes at their first start both end up with the same key: a link never replaces a file. */
function makeMasterKey(path: string): void {
  const draft = `${path}.${process.pid}`
  rmSync(draft, { force: true })
  const file = openSync(draft, 'wx', 0o600)
  writeSync(file, `${randomBytes(masterKeyBytes).toString('base64')}\n`)
  fsyncSync(file)
  closeSync(file)
  try {
    linkSync(draft, path)
  } catch (error) {
    if (errorWord(error) !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  const directory = openSync(dirname(path), 'r')
  fsyncSync(directory)
  closeSync(directory)
}

/** `EACCES` and the like; never a path or a value. */
export const errorWord = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : 'unknown error'
