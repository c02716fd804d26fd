import { and, eq, sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { selectApplications } from './app-environments.ts'
import type { Connection } from './engine/connection.ts'
import type { Database } from './engine/database.ts'

/** Converts the owner of a list to short ids: all rows of a developer, or those of one of its applications. */
export const ownerShortId = (
  database: Database,
  { developerId, appId }: { developerId: string; appId?: string | undefined },
) => ({
  developerId: database.shortId(developerId),
  appId: appId === undefined ? undefined : database.shortId(appId),
})

export type OwnerShortId = ReturnType<typeof ownerShortId>

/** A table with rows of applications, and the column in whose order they are listed. */
type Listed = { table: SQLiteTable & { developerId: SQLiteColumn; appId: SQLiteColumn }; key: SQLiteColumn }

type Owner = { developerId: SQL; appId?: SQL | undefined; environment?: SQL | undefined }

/**
 * Returns the condition and the order of a page of rows on PostgreSQL: those of a developer, of its applications of one
 * environment, or of one application. Each of the two columns has an index in list order. The caller passes the rows through
 * `onlyOwn`.
 *
 * @param isListed further conditions
 */
export function pageOf(
  connection: Connection,
  { table, key }: Listed,
  owner: Owner,
  isListed: SQL | undefined,
  { isAscending = false, limit }: { isAscending?: boolean; limit: SQL },
): { condition: SQL | undefined; order: SQL } {
  const { executor } = connection
  const direction = sql.raw(isAscending ? 'asc' : 'desc')
  const order = sql`${key} ${direction} limit ${limit}`
  if (owner.appId) return { condition: and(eq(table.appId, owner.appId), isListed), order }
  if (!owner.environment) return { condition: and(eq(table.developerId, owner.developerId), isListed), order }
  // A page of each application, in the order of its index.
  const apps = selectApplications(connection, ({ developerId, environment }) =>
    and(eq(developerId, owner.developerId), sql`${environment} = ${owner.environment}`),
  )
  const page = executor
    .select({ key })
    .from(table)
    .where(and(sql`${table.appId} = apps.id`, isListed))
    .orderBy(order)
  const pageKey = sql`page.${sql.identifier(key.name)}`
  const keys = sql`select ${pageKey} from ${apps} as apps cross join lateral (${page}) as page
    order by ${pageKey} ${direction} limit ${limit}`
  return { condition: sql`${key} in (${keys})`, order }
}

/**
 * Tenant isolation in lists: all rows of an application have the same developer.
 *
 * @returns the rows; undefined if they are another developer's
 */
export const onlyOwn = <R extends { developerId: string }>(
  rows: R[],
  { developerId }: { developerId: string },
): R[] | undefined => (rows.every((row) => row.developerId === developerId) ? rows : undefined)
