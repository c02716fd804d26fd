import type { Config } from '../config/config.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Keyring } from '../domain/model/keys.ts'
import type { Log } from '../log/log.ts'
import type { Database } from '../store/engine/database.ts'
import type { ServerRecord } from '../host/server-record.ts'
import type { OnStep } from '../shared/progress.ts'
import type { Cleanups } from './shutdown.ts'
import type { World } from '../world/world.ts'

/** A migrated database with its keys, whichever kind it is. */
export type Storage = {
  database: Database
  keyring: Keyring & {
    /** Reads the data keys again if another process replaced them. */
    refresh(): void | Promise<void>
  }
  /** Time of what is stored. */
  clock: Clock
  /** Whether this start created the database. */
  isNew: boolean
  /** Whether other nodes may serve the same database. */
  isShared: boolean
  /** Lists the nodes of a shared database; empty if there can be no others. */
  listNodes(): Promise<StoredNode[]>
  /** Null if nothing is kept in files. */
  dataDir: string | null
  /** File for the token of the first account; null without a data directory. */
  setupTokenFile: string | null
  /** Set by writes that find the disk of the database full, and reset by the probe of readiness. */
  disk: { isFull: boolean }
  /** Starts what follows the start of the server, such as checks in the background. */
  watch(): Promise<void>
  /** Writes what the server says of itself where host commands find it. It is removed when the server stops. */
  writeRecord(record: ServerRecord, config: Config): Promise<void>
  /** Converts a known error of the database to a StartRefused; returns other errors unchanged. */
  toStartError(error: unknown): unknown
}

/** A node as its row tells. `isAlive`: it renewed its row lately. */
export type StoredNode = { name: string; seenAt: number; isAlive: boolean }

export type StorageNeeds = {
  world: World
  log: Log
  version: string
  /** Clock of this node. */
  clock: Clock
  /** Receives what closes the database. */
  cleanups: Cleanups
  /** Create a database next to files of an earlier one, and refuse one that exists. */
  mustBeNew: boolean
  /** Called as a migration goes on. */
  onStep: OnStep
  /** Called when the server must exit, because it may lose writes or has no key for the database any more. */
  onFault(error: unknown): void
}
