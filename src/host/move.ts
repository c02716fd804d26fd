import type { Config, DatabaseConfig } from '../config/config.ts'
import { dataFiles, OperationRefused, prepareDataDir, StartRefused } from '../store/data-dir/data-dir.ts'
import { findMasterKey } from '../store/data-dir/data-keys.ts'
import { readMasterKeyCandidates } from '../store/data-dir/master-key.ts'
import { requireDatabase } from '../store/data-dir/missing-database.ts'
import { toStartError } from '../store/data-dir/prepare-database.ts'
import { connect } from '../store/sqlite/database.ts'
import { moveToPostgres, type MoveResult, type MoveStep } from '../store/move/to-postgres.ts'
import { requireDataDir, withLock } from './data.ts'

export type HostMove = MoveResult
export type HostMoveStep = MoveStep

/** How long a host command may still write. */
const busyTimeoutMs = 5_000

/**
 * Moves the database of a data directory to PostgreSQL, and makes the directory refuse to serve. The server must be
 * stopped.
 *
 * @throws OperationRefused SERVER_RUNNING, NO_DATABASE, or as moveToPostgres does; StartRefused
 */
export async function moveDataDir(
  { config, target, warn }: { config: Config; target: DatabaseConfig; warn: (message: string) => void },
  options: { dryRun: boolean; restart: boolean; onStep(step: MoveStep): void },
): Promise<HostMove> {
  const dataDir = requireDataDir(config)
  requireDatabase(dataDir)
  const { database } = dataFiles(dataDir)
  prepareDataDir(dataDir, warn)
  // The driver takes 5 MB of memory, and a server loads this module too.
  const { withPostgres } = await import('../store/postgres/connect.ts')
  try {
    return await withLock(dataDir, async () => {
      const source = connect(database, busyTimeoutMs)
      try {
        // Nodes could not read what they are given otherwise.
        if (!findMasterKey(source, readMasterKeyCandidates(dataDir, config.secrets.masterKey)))
          throw new StartRefused(
            'the master key of the database is not here',
            'Restore master.key, or point OTPD_MASTER_KEY_FILE to it: the nodes need it.',
          )
        return await withPostgres(target.url, (client) =>
          moveToPostgres(source, client, { ...options, now: Date.now(), target: describeTarget(target.url) }),
        )
      } finally {
        source.close()
      }
    })
  } catch (error) {
    throw error instanceof OperationRefused ? error : toStartError(error, dataDir)
  }
}

/** Names the database without user, password and parameters. */
function describeTarget(url: string): string {
  const { host, pathname } = new URL(url)
  return `${host}${pathname}`
}
