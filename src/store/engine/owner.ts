import { and, eq, sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Database } from './database.ts'

/** Whose rows a list has: a developer's, all of them or those of one application, as columns of short ids have them. */
export const ownerShortId = (
  database: Database,
  { developerId, appId }: { developerId: string; appId?: string | undefined },
) => ({
  developerId: database.shortId(developerId),
  appId: appId === undefined ? undefined : database.shortId(appId),
})

export type OwnerShortId = ReturnType<typeof ownerShortId>

/**
 * Found by one of the two, as each has an index in the order of the list: the developer of an application's rows is
 * compared as no index has it.
 */
export const isOwnedBy = (
  table: { developerId: SQLiteColumn; appId: SQLiteColumn },
  { developerId, appId }: { developerId: SQL; appId: SQL | undefined },
): SQL | undefined =>
  appId === undefined
    ? eq(table.developerId, developerId)
    : and(eq(table.appId, appId), sql`nullif(${table.developerId}, null) = ${developerId}`)
