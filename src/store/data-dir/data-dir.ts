import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord } from '../../shared/json.ts'
import { restrictAccess } from '../../shared/restrict-access.ts'
import { explainCode } from '../../shared/error-cause.ts'

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
  newDatabase: join(dataDir, 'otpd.db.new'),
  lock: join(dataDir, 'otpd.lock'),
  masterKey: join(dataDir, 'master.key'),
  newMasterKey: join(dataDir, 'master.key.new'),
  backups: join(dataDir, 'backups'),
  lastBackup: join(dataDir, 'last-backup.json'),
  setupToken: join(dataDir, 'setup-token'),
  serverRecord: join(dataDir, 'server.json'),
  tls: join(dataDir, 'tls'),
})

/** Writes a time, in milliseconds, as part of a file's name. */
export const fileTime = (at: number) => new Date(at).toISOString().replaceAll(/[:.]/g, '-')

/**
 * Creates the directory if it is missing, without access for other users. An existing one may be shared with other
 * programs, so its mode stays as it is.
 *
 * @param warn called if other users have access to an existing directory
 * @throws StartRefused the directory or a file in it cannot be written
 */
export function prepareDataDir(dataDir: string, warn: (message: string) => void): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const isExposed = (statSync(dataDir).mode & 0o077) !== 0
    if (isExposed) warn(`other users can read ${dataDir}. ${restrictAccess([dataDir])}`)
    const { database, lock } = dataFiles(dataDir)
    for (const path of [dataDir, lock, database]) if (existsSync(path)) accessSync(path, constants.W_OK)
  } catch (error) {
    throw new StartRefused(
      `the data directory ${dataDir} cannot be used (${explainCode(systemErrorCode(error))})`,
      'Choose another one with --data-dir, or make it and its files writable for this user.',
      error,
    )
  }
}

/**
 * Requires that a data directory is a directory, and that this user may read it and the files that commands need, as far
 * as they are there.
 *
 * @throws OperationRefused NOT_A_DIRECTORY, FILE_NOT_READABLE
 */
export function requireReadable(dataDir: string): void {
  const { database, masterKey } = dataFiles(dataDir)
  const { R_OK, X_OK } = constants
  for (const [path, mode] of [
    [dataDir, R_OK | X_OK],
    [database, R_OK],
    [masterKey, R_OK],
  ] as const) {
    try {
      accessSync(path, mode)
    } catch (error) {
      const code = systemErrorCode(error)
      // Access to a plain file fails with EACCES, even for root.
      if (code === 'ENOTDIR' || (existsSync(dataDir) && !isFolder(dataDir)))
        throw new OperationRefused(
          'NOT_A_DIRECTORY',
          `${dataDir} is not a directory`,
          'Name the data directory of your server with --data-dir.',
          error,
        )
      if (code !== 'ENOENT')
        throw new OperationRefused(
          'FILE_NOT_READABLE',
          `this user cannot read ${path} (${explainCode(code)})`,
          asOwner(dataDir),
          error,
        )
    }
  }
}

/** Tells whether a folder is there; false also where nothing can be, such as at a path that is too long. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** Says as whom to run a command on a directory that this user cannot use. */
function asOwner(dataDir: string): string {
  try {
    const { uid } = statSync(dataDir)
    if (uid !== process.getuid?.()) return `Run the command as the owner: sudo -u '#${uid}' otpd …`
  } catch {
    // A folder above it is closed to this user, too.
  }
  return 'Run the command as the user of the server'
}

/** Remedy for a file of the data directory that cannot be written to. */
export const checkAccess =
  'Check the owner and the permissions of the data directory and its files (otpd doctor names them), and the free space on its disk.'

/** Requires that only the owner can read the file. @throws StartRefused other users can */
export function requirePrivate(path: string): void {
  if (!existsSync(path) || (statSync(path).mode & 0o077) === 0) return
  throw new StartRefused(`other users can read ${path}`, restrictAccess([path]))
}

/** Returns an error's code, such as `EACCES`; never a path or a value. */
export const systemErrorCode = (error: unknown): string =>
  isRecord(error) && typeof error['code'] === 'string' ? error['code'] : 'unknown error'
