import type { Config } from '../config/config.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Log } from '../log/log.ts'
import { dataFiles, prepareDataDir, StartRefused } from '../store/files/data-dir.ts'
import { openKeyring } from '../store/files/live-keyring.ts'
import { acquireLock } from '../store/files/lock.ts'
import { readMasterKey, readMasterKeyCandidates } from '../store/files/master-key.ts'
import { prepareDatabase, wasUncleanStop } from '../store/files/prepare-database.ts'
import { openSqlite } from '../store/engine/sqlite.ts'
import type { Cleanups } from './shutdown.ts'

const lockWaitMs = 1_000

/**
 * Locks the data directory, reads the master key, migrates the database if needed and opens it with its keys. Keys that
 * a host command replaces are read again before the next write.
 *
 * @param needs.onDiskFault called when a disk fault makes the outcome of a commit unknown
 * @throws StartRefused with the cause and a remedy
 */
export function openDatabase(
  dataDir: string,
  config: Pick<Config, 'secrets' | 'migrate'>,
  needs: { log: Log; clock: Clock; cleanups: Cleanups; onDiskFault(error: unknown): void },
) {
  const { log, clock, cleanups, onDiskFault } = needs
  prepareDataDir(dataDir, (message) => log.warn(message))
  const files = dataFiles(dataDir)
  // An operator command may hold the lock briefly.
  const lock = acquireLock(files.lock, lockWaitMs)
  if (!lock) {
    throw new StartRefused(
      `another otpd is already running on ${dataDir}`,
      'Stop it, or choose another data directory with --data-dir.',
    )
  }
  cleanups.push(lock.release)

  const masterKey = readMasterKey(dataDir, config.secrets.masterKey)
  const wasUnclean = wasUncleanStop(dataDir)
  const { isNew, migrated, backup } = prepareDatabase(dataDir, {
    masterKey,
    migrate: config.migrate,
    now: clock.now(),
  })
  if (migrated.length > 0) log.info('database migrated', { migrations: migrated, backup })

  const keyring = openKeyring(
    files.database,
    () => readMasterKeyCandidates(dataDir, config.secrets.masterKey),
    () => log.info('the keys were replaced, and were read again'),
  )
  const database = openSqlite(files.database, { onDiskFault, onForeignCommit: keyring.refresh })
  cleanups.push(database.close)
  return { database, files, keyring, isNew, wasUnclean }
}
