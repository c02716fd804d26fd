import type { Log } from '../log/log.ts'
import type { Database } from '../store/engine/database.ts'
import { MigrationError } from '../store/engine/migrations.ts'
import { requireServableSchema } from '../store/postgres/schema.ts'
import { startPeriodicTask } from './periodic-tasks.ts'
import type { Cleanups } from './shutdown.ts'
import { systemWorld } from '../world/system.ts'

/** A migration that drops what older nodes use waits for two of these intervals before it is applied. */
const schemaWatchMs = 10_000

/**
 * Watches the schema of a shared database, which newer nodes may migrate.
 *
 * @param needs.onFault called once this version must not serve the database any more: the node must drain
 */
export function watchSchema(
  database: Database,
  { log, cleanups, onFault }: { log: Log; cleanups: Cleanups; onFault(error: unknown): void },
): void {
  cleanups.push(
    startPeriodicTask(schemaWatchMs, systemWorld, log, async () => {
      try {
        await requireServableSchema(database)
      } catch (error) {
        if (!(error instanceof MigrationError)) throw error
        onFault(error)
      }
    }),
  )
}
