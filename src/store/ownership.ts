import { and, eq, sql, type SQL } from 'drizzle-orm'
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

/**
 * Tenant isolation in lists: the condition that rows belong to the developer or to one of its applications. Each of the
 * two columns has an index in list order; with an application, the `nullif` keeps SQLite from choosing the developer's.
 */
export const isOwnedBy = (
  table: { developerId: SQLiteColumn; appId: SQLiteColumn },
  { developerId, appId }: { developerId: SQL; appId: SQL | undefined },
): SQL | undefined =>
  appId === undefined
    ? eq(table.developerId, developerId)
    : and(eq(table.appId, appId), sql`nullif(${table.developerId}, null) = ${developerId}`)
