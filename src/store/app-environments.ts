import { eq, type SQL } from 'drizzle-orm'
import type { Environment } from '../domain/model/application.ts'
import type { Connection } from './engine/connection.ts'
import type { SqliteParts } from './engine/database.ts'
import { textParam } from './engine/query-params.ts'
import type { Tables } from './engine/tables.ts'
import { prepareRemembered } from './remember.ts'

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

/** Creates the look-up of the environment of an application for both databases. It remembers nothing. */
export function createEnvironmentLookup(connection: Connection) {
  const select = connection.database.prepare(() => selectEnvironment(connection))
  return async (appId: string): Promise<Environment | undefined> =>
    (await select({ id: appId }))[0]?.environment
}

const selectEnvironment = (connection: Connection) =>
  selectApplications(connection, ({ id }) => eq(id, textParam('id')))
