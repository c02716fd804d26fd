import { existsSync, readdirSync, statSync } from 'node:fs'
import { dataFiles, OperationRefused } from './data-dir.ts'

// The newest commits live in the write-ahead log, and SQLite deletes the log of a database that is missing or empty. So
// nothing may open a database that is not there, and a start creates one only in a directory that never had one.

/** Whether a data directory has a database; an empty file is none. */
export const hasDatabase = (dataDir: string): boolean => isFilled(dataFiles(dataDir).database)

const isFilled = (path: string) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0

/** Requires a database. @throws OperationRefused NO_DATABASE, with what is there instead */
export function requireDatabase(dataDir: string): void {
  if (hasDatabase(dataDir)) return
  const { message, remedy } = describeMissing(dataDir)
  throw new OperationRefused('NO_DATABASE', message, remedy)
}

/** A data directory without a database. */
export type MissingDatabase = {
  /** Nothing shows that there ever was one, so that a start may create it. */
  isNew: boolean
  /** It has files, and none of otpd. */
  isForeign: boolean
  message: string
  remedy: string
}

/** Describes a data directory without a database: what it has instead, and what to do about it. */
export function describeMissing(dataDir: string): MissingDatabase {
  const { database } = dataFiles(dataDir)
  const message = `there is no database in ${dataDir}`
  const wrongDirectory = 'Name the data directory of your server with --data-dir'
  const names = isFirstStartCutShort(dataDir) ? [] : listOtherFiles(dataDir)
  const isEmptyFile = existsSync(database)
  if (names.length === 0 && !isEmptyFile)
    return {
      isNew: true,
      isForeign: false,
      message,
      remedy: `${wrongDirectory}, or start a server there: otpd serve`,
    }
  const ownNames = names.filter(isOwnName)
  const seen = listNames(ownNames.length > 0 ? ownNames : names)
  const next = names.length === 0 ? '' : `, next to ${seen}`
  return {
    isNew: false,
    isForeign: ownNames.length === 0 && !isEmptyFile,
    message: isEmptyFile ? `${message}: otpd.db is empty${next}` : `${message}, but ${seen}`,
    remedy:
      ownNames.length > 0 || isEmptyFile
        ? 'Mount the disk that has it, or restore a backup: otpd restore latest. To begin with an empty database, and keep these files: otpd serve --new'
        : `${wrongDirectory}. To create a database here: otpd serve --new`,
  }
}

/** Whether the start that created the directory was killed: its draft of a database never served anyone. */
function isFirstStartCutShort(dataDir: string): boolean {
  const { database, newDatabase } = dataFiles(dataDir)
  return existsSync(newDatabase) && !existsSync(database) && !isFilled(`${database}-wal`)
}

/** Files that a directory may have before its first start. */
const isIgnored = (name: string) => /^(\..*|.*\.toml|lost\+found|otpd\.db(-shm)?|otpd\.lock.*)$/.test(name)

const isOwnName = (name: string) =>
  /^(otpd\.db.*|master\.key.*|backups|last-backup\.json|server\.json|setup-token|tls)$/.test(name)

const listOtherFiles = (dataDir: string): string[] =>
  existsSync(dataDir)
    ? readdirSync(dataDir)
        .filter((name) => !isIgnored(name))
        .toSorted()
    : []

const namedMax = 4

const listNames = (names: readonly string[]) =>
  new Intl.ListFormat('en').format(
    names.length > namedMax
      ? [...names.slice(0, namedMax - 1), `${names.length - namedMax + 1} more`]
      : names,
  )
