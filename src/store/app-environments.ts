import { eq } from 'drizzle-orm'
import type { Environment } from '../domain/model/application.ts'
import { textParam } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import type { Database } from './engine/database.ts'
import type { Awaitable } from '../domain/model/awaitable.ts'

/** By database; an application never changes its environment. */
const known = new WeakMap<Database, Map<string, Environment>>()

/** Creates the look-up of the environment of an application, which may have been deleted. */
export function createEnvironmentLookup({ database, executor }: Connection) {
  const { applications, deletedApplications } = database.tables
  const environments = known.get(database) ?? new Map<string, Environment>()
  known.set(database, environments)
  const findIn = [applications, deletedApplications].map((table) =>
    database.prepare(() =>
      executor
        .select({ environment: table.environment })
        .from(table)
        .where(eq(table.id, textParam('id'))),
    ),
  )

  return (appId: string): Awaitable<Environment | undefined> => environments.get(appId) ?? find(appId)

  async function find(appId: string): Promise<Environment | undefined> {
    for (const findRow of findIn) {
      const [row] = await findRow({ id: appId })
      if (!row) continue
      environments.set(appId, row.environment)
      return row.environment
    }
    return undefined
  }
}
