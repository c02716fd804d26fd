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
import { isRecord } from '../../shared/json.ts'

/** Reason why otpd cannot start on this data directory, and what to do about it. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused'
  readonly remedy: string

  constructor(message: string, remedy: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.remedy = remedy
  }
}

/** Reason why an operator command did nothing: a message, a code for scripts (`reason`), and what to do about it. */
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

/** Paths of the files in a data directory. */
export const dataFiles = (dataDir: string) => ({
  database: join(dataDir, 'otpd.db'),
  lock: join(dataDir, 'otpd.lock'),
  masterKey: join(dataDir, 'master.key'),
  backups: join(dataDir, 'backups'),
  setupToken: join(dataDir, 'setup-token'),
})

/**
 * Creates the directory if it is missing, and removes other users' access.
 *
 * @param warn called if the directory belongs to another user and stays accessible
 * @throws StartRefused the directory or a file in it cannot be written
 */
export function prepareDataDir(dataDir: string, warn: (message: string) => void): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const { mode, uid } = statSync(dataDir)
    const isExposed = (mode & 0o077) !== 0
    if (isExposed && uid === process.getuid?.()) chmodSync(dataDir, 0o700)
    else if (isExposed) warn(`other users can read ${dataDir}. Restrict it: chmod 700 ${dataDir}`)
    const { database, lock } = dataFiles(dataDir)
    for (const path of [dataDir, lock, database]) if (existsSync(path)) accessSync(path, constants.W_OK)
  } catch (error) {
    throw new StartRefused(
      `the data directory ${dataDir} cannot be used (${systemErrorCode(error)})`,
      'Choose another one with --data-dir, or make it and its files writable for this user.',
      error,
    )
  }
}

/** Requires that only the owner can read the file. @throws StartRefused other users can */
export function requirePrivate(path: string): void {
  if (!existsSync(path) || (statSync(path).mode & 0o077) === 0) return
  throw new StartRefused(`other users can read ${path}`, `Restrict it: chmod 600 ${path}`)
}

/**
 * Returns the configured master key, or the data directory's, which the first start creates.
 *
 * @throws StartRefused the key file is missing while a database exists, is readable by other users, or holds no key
 */
export function readMasterKey(dataDir: string, configured: Uint8Array | null): Uint8Array {
  if (configured) return configured
  const files = dataFiles(dataDir)
  if (!existsSync(files.masterKey)) {
    if (existsSync(files.database)) {
      throw new StartRefused(
        `the master key ${files.masterKey} is missing, and the database was created with it`,
        'Restore it, or point OTPD_MASTER_KEY_FILE to it. Without it client IDs and pending codes are lost.',
      )
    }
    makeMasterKey(files.masterKey)
  }
  requirePrivate(files.masterKey)
  const key = Buffer.from(readFileSync(files.masterKey, 'utf8').trim(), 'base64')
  if (key.length === masterKeyBytes) return key
  throw new StartRefused(
    `${files.masterKey} does not hold a master key`,
    'Restore the right file: 32 bytes in base64.',
  )
}

/**
 * Creates the key atomically: two processes that start at once end up with the same key, because a link never
 * replaces a file.
 */
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
    if (systemErrorCode(error) !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  const directory = openSync(dirname(path), 'r')
  fsyncSync(directory)
  closeSync(directory)
}

/** Returns an error's code, such as `EACCES`; never a path or a value. */
export const systemErrorCode = (error: unknown): string =>
  isRecord(error) && typeof error['code'] === 'string' ? error['code'] : 'unknown error'
