import type { Config } from '../config/config.ts'
import { openDataDir } from './open-data-dir.ts'
import { openSharedDatabase } from './open-shared-database.ts'
import type { Storage, StorageNeeds } from './storage.ts'

/**
 * Opens the configured database: PostgreSQL, or SQLite in the data directory.
 *
 * @throws StartRefused with the cause and a remedy
 */
export const openStorage = (config: Config, needs: StorageNeeds): Promise<Storage> =>
  config.database ? openSharedDatabase(config, config.database, needs) : openDataDir(config, needs)
