import { asc, lte } from 'drizzle-orm'
import type { OldIdentity, OldIdentityStore } from '../domain/store/identities.ts'
import { createEnvironmentLookup } from './app-environments.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'

/** Reads and deletes the identities of 0.1.0. */
export function createOldIdentityStore(connection: Connection): OldIdentityStore {
  const { database, executor } = connection
  const { identities, identityApplications: links } = database.tables
  const findEnvironment = createEnvironmentLookup(connection)

  return {
    hasAny: async () => (await onTable(executor, identities).find()) !== undefined,

    async take(limit) {
      const rows = await executor.select().from(identities).orderBy(asc(identities.id)).limit(limit)
      const lastId = rows.at(-1)?.id
      if (lastId === undefined) return []
      const found = await executor.select().from(links).where(lte(links.identityId, lastId))
      // Deletes the links, too. Another process may have taken some of the rows meanwhile.
      const deleted = await onTable(executor, identities).take(lte(identities.id, lastId))
      const takenIds = new Set(deleted.map(({ id }) => id))
      const byId = new Map(
        rows
          .filter(({ id }) => takenIds.has(id))
          .map((row): [string, OldIdentity] => [row.id, { ...row, applications: [] }]),
      )
      for (const { identityId, appId } of found)
        byId
          .get(identityId)
          ?.applications.push({ id: appId, environment: (await findEnvironment(appId)) ?? 'live' })
      return [...byId.values()]
    },
  }
}
