import type { Config } from '../config/config.ts'
import { openDataDir } from './open-data-dir.ts'
import type { Storage, StorageNeeds } from './storage.ts'

/**
 * Opens the configured database: PostgreSQL, or SQLite in the data directory.
 *
 * @throws StartRefused with the cause and a remedy
 */
export async function openStorage(config: Config, needs: StorageNeeds): Promise<Storage> {
  if (!config.database) return openDataDir(config, needs)
  // The driver takes 5 MB of memory.
  const { openSharedDatabase } = await import('./open-shared-database.ts')
  return openSharedDatabase(config, config.database, needs)
}
