import type { Database as SqliteConnection } from 'bun:sqlite'
import { createKeyring, type Keyring } from '../../domain/model/keys.ts'
import { readDatabase } from './open-readonly.ts'
import { StartRefused } from './data-dir.ts'
import { readMeta, requireDataKeys } from './data-keys.ts'
import { requireNotMoved } from './moved.ts'

/** The keyring of a database that other processes may give new keys. */
type LiveKeyring = Keyring & {
  /** Master key that opens the database now. */
  readonly masterKey: Uint8Array
  /**
   * Reads the data keys again if they were replaced.
   *
   * @param connection reads within its transaction; default: the last commit
   * @throws StartRefused the database has another master key now, which this process cannot read
   */
  refresh(connection?: SqliteConnection): void
}

/**
 * Opens the keyring of a prepared database.
 *
 * @param readCandidates reads the master keys that this process can find; called again when the keys were replaced
 * @param onReplaced called after the keys were replaced
 * @throws StartRefused no master key opens the database, or its data was moved to PostgreSQL
 */
export function openKeyring(
  database: string,
  readCandidates: () => readonly Uint8Array[],
  onReplaced: () => void = () => {},
): LiveKeyring {
  /** Reads what changes with every change of the data keys. */
  const readEpoch = (connection: SqliteConnection) => {
    // Checked before each write that follows another process's.
    requireNotMoved(connection)
    return readMeta(connection, 'key_epoch')
  }
  const first = readDatabase(database, (connection) => ({
    epoch: readEpoch(connection),
    ...requireDataKeys(connection, readCandidates()),
  }))
  let { epoch, masterKey } = first
  const refreshFrom = (connection: SqliteConnection) => {
    const current = readEpoch(connection)
    if (current === epoch) return
    const opened = requireDataKeys(connection, readCandidates(), replacedMasterKey)
    keyring.replace(opened.dataKeys)
    masterKey = opened.masterKey
    epoch = current
    onReplaced()
  }
  const refresh = (connection?: SqliteConnection) =>
    connection ? refreshFrom(connection) : readDatabase(database, refreshFrom)
  const keyring = createKeyring(first.dataKeys, refresh)
  return {
    ...keyring,
    get masterKey() {
      return masterKey
    },
    refresh,
  }
}

const replacedMasterKey = () =>
  new StartRefused(
    'the database belongs to another master key',
    'Start otpd with the new key: rotate-master-key has replaced it.',
  )
