import { migratePostgres, pendingPostgresMigrations, readPostgresSchema } from '../store/postgres/migrate.ts'
import type { MigrationStatus } from '../store/data-dir/inspection.ts'
import { withSnapshot } from '../store/postgres/snapshot.ts'
import { connectTo, withPostgres } from '../store/postgres/connect.ts'

/** Lists the applied and the pending migrations of a PostgreSQL database. @throws StartRefused */
export const postgresMigrationStatus = (url: string): Promise<MigrationStatus> =>
  withPostgres(url, async (client) => {
    const schema = await withSnapshot(client, () => readPostgresSchema(client))
    const pending = pendingPostgresMigrations(schema)
    return { applied: schema.applied.map(({ name }) => name), pending: pending.map(({ name }) => name) }
  })

/**
 * Applies the pending migrations of a PostgreSQL database.
 *
 * @param onDrain called with the name of a migration that waits until older nodes have drained
 * @throws StartRefused
 */
export const migratePostgresUp = (url: string, onDrain: (name: string) => void): Promise<string[]> =>
  withPostgres(url, async (client) => {
    const { migrated } = await migratePostgres(client, {
      migrate: true,
      connect: () => connectTo(url),
      onDrain,
    })
    return migrated
  })
