import { eq } from 'drizzle-orm'
import type { Environment } from '../domain/model/application.ts'
import { createEnvironmentLookup } from './app-environments.ts'
import { textParam } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import type { ListSources } from './engine/sqlite-state.ts'
import { rememberConfiguration } from './remember.ts'

/** Lists of one kind of rows, for a query with or without a filter. */
type Kind = {
  /** Those of a developer. */
  developer: Readonly<Record<Environment, number>>
  /** All those of an application, which divide its rows. */
  application: Readonly<Record<string, number>>
}

type ListQuery = { developerId: string; appId?: string | undefined; environment?: Environment | undefined }

/**
 * Creates the function that finds the lists of a query, on SQLite. Without a filter, a developer has a list of its own; with
 * one, those of its applications are merged, deleted ones included.
 */
export function createListSources(connection: Connection, { developer, application }: Kind) {
  const { database, executor } = connection
  const { applications, deletedApplications } = database.tables
  const findEnvironment = createEnvironmentLookup(connection)
  const selectApplications = [applications, deletedApplications].map((table) =>
    database.prepare(() =>
      executor
        .select({ id: table.id, environment: table.environment })
        .from(table)
        .where(eq(table.developerId, textParam('developerId'))),
    ),
  )
  const listApplications = rememberConfiguration(connection, async (developerId) => {
    const rows = await Promise.all(selectApplications.map((select) => select({ developerId })))
    return rows.flat().map(({ id, environment }) => ({ owner: database.shortId(id), environment }))
  })

  /** @param filter numbers of an application's lists; undefined for all */
  return async (
    { developerId, appId, environment }: ListQuery,
    filter: number[] | undefined,
  ): Promise<ListSources> => {
    const lists = filter ?? Object.values(application)
    if (appId !== undefined) {
      const isListed = environment === undefined || (await findEnvironment(appId)) === environment
      return { owners: isListed ? [database.shortId(appId)] : [], lists }
    }
    const own = database.shortId(developerId)
    if (!filter)
      return {
        owners: [own],
        lists: environment === undefined ? Object.values(developer) : [developer[environment]],
      }
    const apps = (await listApplications(developerId)).filter(
      (app) => environment === undefined || app.environment === environment,
    )
    // Rows without an application are live.
    return { owners: [...apps.map(({ owner }) => owner), ...(environment === 'test' ? [] : [own])], lists }
  }
}
