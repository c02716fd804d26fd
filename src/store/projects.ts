import { and, count, desc, eq, exists, lt, not, sql } from 'drizzle-orm'
import type { ProjectStore } from '../domain/apps/projects.ts'
import { atMost } from './engine/typed-placeholders.ts'
import type { Builders, Database } from './engine/database.ts'
import { prepareFiltered, type Given } from './engine/prepare-filtered.ts'

export function createProjectStore(database: Database, on: Builders): ProjectStore {
  const { projects, applications } = database.tables
  // Spelled out: of a query on one table drizzle leaves the table's name out, and `id` would be the application's.
  const applicationCount = sql<number>`(select count(*) from ${applications} where ${applications.projectId} = ${projects}.id)`
  const columns = {
    id: projects.id,
    developerId: projects.developerId,
    name: projects.name,
    description: projects.description,
    createdAt: projects.createdAt,
    updatedAt: projects.updatedAt,
    applicationCount: applicationCount.mapWith(Number),
  }
  const owned = (developerId: string, id: string) =>
    and(eq(projects.id, id), eq(projects.developerId, developerId))
  type ListFilter = { developerId: string; limit: number; before: string | undefined }
  const list = prepareFiltered(database, ({ developerId, limit, before }: Given<ListFilter>) =>
    on
      .select(columns)
      .from(projects)
      .where(and(eq(projects.developerId, developerId), before && lt(projects.id, before)))
      .orderBy(atMost(desc(projects.id), limit)),
  )

  return {
    async find(developerId, id) {
      const [project] = await on.select(columns).from(projects).where(owned(developerId, id))
      return project
    },

    list: (developerId, limit, before) => list({ developerId, limit, before }),

    async count(developerId) {
      const [row] = await on
        .select({ count: count() })
        .from(projects)
        .where(eq(projects.developerId, developerId))
      return row?.count ?? 0
    },

    async insert(project) {
      await on.insert(projects).values(project)
    },

    async update(developerId, id, changes, now) {
      const updated = await on
        .update(projects)
        .set({ ...changes, updatedAt: now })
        .where(owned(developerId, id))
        .returning({ id: projects.id })
      return updated.length === 1
    },

    lock: (id) => database.lock(on, projects, projects.id, id),

    async deleteEmpty(developerId, id) {
      const inside = on
        .select({ id: applications.id })
        .from(applications)
        .where(eq(applications.projectId, id))
      const deleted = await on
        .delete(projects)
        .where(and(owned(developerId, id), not(exists(inside))))
        .returning({ id: projects.id })
      return deleted.length === 1
    },
  }
}
