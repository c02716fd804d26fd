import { eq, type SQL } from 'drizzle-orm'
import type { Environment } from '../domain/model/application.ts'
import { createVersionedCache } from '../domain/model/versioned-cache.ts'
import type { Connection } from './engine/connection.ts'
import type { Preparable, SqliteParts } from './engine/database.ts'
import { textParam } from './engine/query-params.ts'
import type { Tables } from './engine/tables.ts'

const entriesMax = 10_000

/**
 * Prepares a query of configuration on SQLite, and remembers what it returns while the version of the configuration is the same.
 *
 * @param build has a placeholder `id`
 */
export function prepareRemembered<R, T>(
  { database, executor }: Connection,
  sqlite: SqliteParts,
  build: () => Preparable<R>,
  parse: (rows: R, id: string) => T,
): (id: string) => T {
  const select = sqlite.prepare(build)
  const cache = createVersionedCache<T>(entriesMax)
  const isReader = executor === database.read
  return (id) => {
    if (isReader) sqlite.refresh()
    const version = sqlite.configuration.current()
    const known = cache.get(id, version)
    if (known !== undefined) return known
    const value = parse(select({ id }), id)
    cache.set(id, version, value)
    return value
  }
}

/** Selects applications that match, deleted ones included, whose rows stay listed. */
export function selectApplications(
  { database, executor }: Connection,
  match: (table: Tables['applications'] | Tables['deletedApplications']) => SQL | undefined,
) {
  const { applications, deletedApplications: deleted } = database.tables
  const { id, environment } = applications
  return executor
    .select({ id, environment })
    .from(applications)
    .where(match(applications))
    .unionAll(
      executor
        .select({ id: deleted.id, environment: deleted.environment })
        .from(deleted)
        .where(match(deleted)),
    )
}

/** Prepares the look-up of the environment of an application, which may have been deleted, on SQLite. */
export const prepareEnvironment = (connection: Connection, sqlite: SqliteParts) =>
  prepareRemembered(
    connection,
    sqlite,
    () => selectEnvironment(connection),
    ([row]) => row?.environment,
  )

/** Does the same on both databases, and remembers nothing. */
export function createEnvironmentLookup(connection: Connection) {
  const select = connection.database.prepare(() => selectEnvironment(connection))
  return async (appId: string): Promise<Environment | undefined> =>
    (await select({ id: appId }))[0]?.environment
}

const selectEnvironment = (connection: Connection) =>
  selectApplications(connection, ({ id }) => eq(id, textParam('id')))
