import { eq, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
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

/** The owner whose list has the rows: the application if one is given. */
export const listOwner = ({ developerId, appId }: OwnerShortId): string | number => appId ?? developerId

/**
 * Condition that rows belong to the developer, or to the application if one is given. Each of the two columns has an
 * index in list order on PostgreSQL. The caller passes the rows through `onlyOwn`.
 */
export const isOwnedBy = (
  table: { developerId: SQLiteColumn; appId: SQLiteColumn },
  { developerId, appId }: { developerId: SQL; appId: SQL | undefined },
): SQL => (appId === undefined ? eq(table.developerId, developerId) : eq(table.appId, appId))

/**
 * Tenant isolation in lists: all rows of an application have the same developer.
 *
 * @returns the rows; undefined if they are another developer's
 */
export const onlyOwn = <R extends { developerId: string }>(
  rows: R[],
  { developerId }: { developerId: string },
): R[] | undefined => (rows.every((row) => row.developerId === developerId) ? rows : undefined)
