import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { createDatabase } from '../store/data-dir/create-database.ts'
import { dataFiles, prepareDataDir, StartRefused, systemErrorCode } from '../store/data-dir/data-dir.ts'
import { keepDamagedLog, listDamagedLogs } from '../store/data-dir/damaged-log.ts'
import { startIntegrityChecks } from '../store/data-dir/integrity.ts'
import { openKeyring } from '../store/data-dir/live-keyring.ts'
import { lockDataDir, removeServerRecord, writeServerRecord } from '../store/data-dir/server-record.ts'
import { readMasterKey, readMasterKeyCandidates } from '../store/data-dir/master-key.ts'
import {
  hasWal,
  markCleanStop,
  prepareDatabase,
  takeCleanStop,
  toStartError,
} from '../store/data-dir/prepare-database.ts'
import { removeRestoreDrafts } from '../store/data-dir/restore.ts'
import { openSqlite } from '../store/sqlite/database.ts'
import { explainCode } from '../shared/error-cause.ts'
import { createOutageReporter } from './outage-log.ts'
import type { Cleanups } from './shutdown.ts'
import type { Storage, StorageNeeds } from './storage.ts'
import { createUpgradeNotice } from './upgrade-notice.ts'

const lockWaitMs = 1_000

/**
 * Locks the data directory, creates or migrates its database if needed, and opens it with its keys. Keys that
 * a host command replaces are read again before the next write.
 *
 * @throws StartRefused with the cause and a remedy
 */
export async function openDataDir(config: DataDirConfig, needs: StorageNeeds): Promise<Storage> {
  const dataDir = config.dataDir ?? makeRemovedDir(needs.cleanups)
  try {
    return await openIn(dataDir, config, needs)
  } catch (error) {
    throw toStartError(error, dataDir)
  }
}

type DataDirConfig = Pick<Config, 'dataDir' | 'secrets' | 'migrate' | 'listen' | 'tls' | 'log'>

async function openIn(
  dataDir: string,
  config: DataDirConfig,
  { world, log, clock, cleanups, mustBeNew, onFault, onStep }: StorageNeeds,
): Promise<Storage> {
  prepareDataDir(dataDir, (message) => log.warn(message))
  const files = dataFiles(dataDir)
  // An operator command may hold the lock briefly.
  const lock = lockDataDir(dataDir, lockWaitMs)
  if (!lock) {
    throw new StartRefused(
      `another otpd is already running on ${dataDir}`,
      'Stop it, or choose another data directory with --data-dir.',
    )
  }
  cleanups.push(lock.release)
  cleanups.push(() => removeServerRecord(dataDir))

  if (removeRestoreDrafts(dataDir)) log.info('the working files of an interrupted restore were deleted')
  keepDamagedLog(dataDir)
  const { masterKey: configured } = config.secrets
  const isNew = createDatabase(dataDir, { configured, isForced: mustBeNew, now: clock.now() })
  const masterKey = readMasterKey(dataDir, configured)
  const hadWal = hasWal(dataDir)
  const notice = createUpgradeNotice(config, dataDir)
  let prepared: ReturnType<typeof prepareDatabase>
  try {
    prepared = prepareDatabase(dataDir, {
      masterKey,
      migrate: config.migrate,
      now: clock.now(),
      onStep(step) {
        notice.onStep(step)
        onStep(step)
      },
    })
  } finally {
    await notice.end()
  }
  const { migrated, backup } = prepared
  if (migrated.length > 0) log.info('database migrated', { migrations: migrated, backup })

  const keyring = openKeyring(
    files.database,
    () => readMasterKeyCandidates(dataDir, configured),
    () => log.info('the keys were replaced, and were read again'),
  )
  const disk = { isFull: false }
  const outages = createOutageReporter(log, clock)
  const database = openSqlite(files.database, {
    world,
    onDiskFault: onFault,
    onUnavailable(code) {
      disk.isFull ||= code === 'SQLITE_FULL'
      outages.onFailure(code)
    },
    onForeignCommit: keyring.refresh,
  })
  cleanups.push(async () => {
    try {
      await markCleanStop(database)
    } finally {
      await database.close()
    }
  })
  return {
    database,
    keyring,
    clock,
    isNew,
    isShared: false,
    listNodes: async () => [],
    dataDir,
    setupTokenFile: files.setupToken,
    disk,
    async watch() {
      const wasClean = await takeCleanStop(database)
      const damagedLogs = listDamagedLogs(dataDir)
      for (const { path, framesRead, framesLost, writtenAt } of damagedLogs) {
        const lastWritten = new Date(writtenAt).toISOString()
        log.error('the write-ahead log was damaged, and changes of its time may be missing', {
          file: path,
          framesRead,
          framesLost,
          lastWritten,
          remedy: 'Compare with a backup of that time, and delete the file when you have.',
        })
      }
      const checks = { afterUncleanStop: hadWal && !wasClean, hasDamagedLog: damagedLogs.length > 0 }
      if (config.dataDir !== null)
        cleanups.push(startIntegrityChecks(files.database, log, { world, ...checks }))
    },
    async writeRecord(record) {
      // The folder of development mode ends with the server.
      if (config.dataDir !== null) writeServerRecord(dataDir, record)
    },
    toStartError: (error) => toStartError(error, dataDir),
  }
}

function makeRemovedDir(cleanups: Cleanups): string {
  const folder = makeTemporaryDir('otpd-dev-')
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Makes a new folder for temporary files. @throws StartRefused this user cannot make one there */
export function makeTemporaryDir(prefix: string): string {
  try {
    return mkdtempSync(join(tmpdir(), prefix))
  } catch (error) {
    throw new StartRefused(
      `no temporary folder can be made in ${tmpdir()} (${explainCode(systemErrorCode(error))})`,
      'Name one that this user can write to: TMPDIR=DIR.',
      error,
    )
  }
}
