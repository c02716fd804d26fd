import { eq } from 'drizzle-orm'
import type { Environment } from '../domain/model/application.ts'
import { prepareEnvironment, selectApplications } from './app-environments.ts'
import { textParam } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import type { ListKey, ListRange, Lists, ListSources } from './engine/sqlite-state.ts'
import { prepareRemembered } from './remember.ts'

/** Lists of one kind of rows, for a query with or without a filter. */
type Kind = {
  /** Those of a developer. */
  developer: Readonly<Record<Environment, number>>
  /** All those of an application, which divide its rows. */
  application: Readonly<Record<string, number>>
}

type ListQuery = { developerId: string; appId?: string | undefined; environment?: Environment | undefined }

/**
 * Creates the function that finds the lists of a query, on SQLite; PostgreSQL has none. Without a filter, it is one list of the
 * developer. With a filter, the lists of the developer's applications are merged, also those of deleted applications.
 */
export function createListSources(connection: Connection, { developer, application }: Kind) {
  const { database } = connection
  if (!database.sqlite) return undefined
  const findEnvironment = prepareEnvironment(connection, database.sqlite)
  const listApplications = prepareRemembered(
    connection,
    database.sqlite,
    () => selectApplications(connection, (table) => eq(table.developerId, textParam('id'))),
    (rows) => rows.map(({ id, environment }) => ({ owner: database.shortId(id), environment })),
  )

  /** @param filter numbers of an application's lists; undefined for all */
  return ({ developerId, appId, environment }: ListQuery, filter: number[] | undefined): ListSources => {
    const lists = filter ?? Object.values(application)
    if (appId !== undefined) {
      const isListed = environment === undefined || findEnvironment(appId) === environment
      return { owners: isListed ? [database.shortId(appId)] : [], lists }
    }
    const own = database.shortId(developerId)
    if (!filter)
      return {
        owners: [own],
        lists: environment === undefined ? Object.values(developer) : [developer[environment]],
      }
    const apps = listApplications(developerId).filter(
      (app) => environment === undefined || app.environment === environment,
    )
    // Rows without an application are live.
    return { owners: [...apps.map(({ owner }) => owner), ...(environment === 'test' ? [] : [own])], lists }
  }
}

/**
 * Loads the first rows of lists that match.
 *
 * @param load loads the rows of keys that exist and match, as `inOrder` returns them; undefined ends the list
 */
export async function loadListed<K extends ListKey, R>(
  lists: Pick<Lists, 'page'>,
  sources: ListSources,
  range: ListRange,
  limit: number,
  load: (keys: K[]) => Promise<ReadonlyArray<R | undefined> | undefined>,
): Promise<R[]> {
  const rows: R[] = []
  let next = range
  for (;;) {
    // A list has numbers or texts.
    const keys = lists.page(sources, next, limit) as K[]
    const last = keys.at(-1)
    if (last === undefined) return rows
    const found = await load(keys)
    if (!found) return rows
    for (const row of found) {
      if (row !== undefined && rows.push(row) === limit) return rows
    }
    // Nothing more to ask for.
    if (keys.length < limit) return rows
    next = 'after' in range ? { after: last } : { before: last }
  }
}

/** Arranges rows in the order of their keys; undefined for a key without a row. */
export function inOrder<K, R>(
  keys: readonly K[],
  rows: readonly R[],
  keyOf: (row: R) => K,
): Array<R | undefined> {
  const byKey = new Map(rows.map((row) => [keyOf(row), row]))
  return keys.map((key) => byKey.get(key))
}
