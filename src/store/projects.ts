import { and, desc, eq, exists, getTableColumns, lt, not, sql } from 'drizzle-orm'
import type { ProjectStore } from '../domain/store/projects.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'

export function createProjectStore({ database, executor }: Connection): ProjectStore {
  const { projects, applications } = database.tables
  const rows = onTable(executor, projects)
  // `projects.id` is written by hand: drizzle omits the table name in single-table queries, and `id` would then be the
  // application's.
  const applicationCount = sql<number>`(select count(*) from ${applications} where ${applications.projectId} = ${projects}.id)`
  const columns = {
    ...getTableColumns(projects),
    applicationCount: applicationCount.mapWith(Number),
  }
  const byOwnerAndId = (developerId: string, id: string) =>
    and(eq(projects.id, id), eq(projects.developerId, developerId))
  type ListFilter = { developerId: string; limit: number; before: string | undefined }
  const list = prepareFiltered(database, ({ developerId, limit, before }: FilterPlaceholders<ListFilter>) =>
    executor
      .select(columns)
      .from(projects)
      .where(and(eq(projects.developerId, developerId), before && lt(projects.id, before)))
      .orderBy(orderByLimit(desc(projects.id), limit)),
  )

  return {
    async find(developerId, id) {
      const [project] = await executor.select(columns).from(projects).where(byOwnerAndId(developerId, id))
      return project
    },

    list: (developerId, limit, before) => list({ developerId, limit, before }),

    count: (developerId) => rows.count(eq(projects.developerId, developerId)),
    insert: (project) => rows.insert(project),
    update: (developerId, id, changes, now) =>
      rows.updateOne({ ...changes, updatedAt: now }, byOwnerAndId(developerId, id)),

    async lock(id) {
      await database.lock(executor, projects, projects.id, id)
    },

    async deleteIfEmpty(developerId, id) {
      const containedApplications = executor
        .select({ id: applications.id })
        .from(applications)
        .where(eq(applications.projectId, id))
      const isEmpty = and(byOwnerAndId(developerId, id), not(exists(containedApplications)))
      return (await rows.take(isEmpty)).length === 1
    },
  }
}
