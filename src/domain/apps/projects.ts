import { selfActor, recordAudit, type AuditDetails } from '../accounts/audit.ts'
import type { Actor } from '../model/audit.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { runIdempotently, type IdempotentResult } from '../limits/idempotency.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { isId, type NewId } from '../model/ids.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import { resolvePlan, type Plans } from '../model/plans.ts'
import type { Clock } from '../model/clock.ts'
import type { Developer } from '../model/developer.ts'
import type { Store, Stores } from '../store/store.ts'
import type { Project, ProjectWithCount, ProjectChanges } from '../model/project.ts'

export type ProjectService = ReturnType<typeof createProjectService>

/** Creates the service that manages projects. */
export function createProjectService(needs: {
  store: Store<'audit' | 'developers' | 'idempotency' | 'projects'>
  clock: Clock
  newId: NewId
  plans: Plans
}) {
  const { store, clock, newId, plans } = needs
  const addAuditEntry = (tx: Pick<Stores, 'audit'>, actor: Actor, details: AuditDetails) =>
    recordAudit(tx, newId, selfActor(actor), details, clock.now())

  return {
    /** @throws INVALID_ARGUMENT (CURSOR_INVALID) */
    async list(developer: Developer, page: PageRequest): Promise<Page<ProjectWithCount>> {
      const before = readIdCursor(page, 'prj')
      const rows = await store.read.projects.list(developer.id, page.limit + 1, before)
      return toPage(rows, page.limit, (project) => project.id)
    },

    /** @throws NOT_FOUND it does not exist or is another developer's */
    async get(developer: Developer, id: string): Promise<ProjectWithCount> {
      const project = isId('prj', id) ? await store.read.projects.find(developer.id, id) : undefined
      if (!project) throw notFound('project')
      return project
    },

    /**
     * Creates a project. Atomic: the developer is locked while the projects are counted, so that the plan's limit
     * holds.
     *
     * @throws PLAN_LIMIT_REACHED; IDEMPOTENCY_KEY_REUSED
     */
    create(
      developer: Actor,
      input: { name: string; description?: string | null | undefined },
      idempotency?: IdempotencyScope,
    ): Promise<IdempotentResult<ProjectWithCount>> {
      return runIdempotently(store, clock, idempotency, async (tx) => {
        await tx.developers.lock(developer.id)
        const limit = resolvePlan(plans, developer.plan).projects
        if ((await tx.projects.count(developer.id)) >= limit) {
          throw planLimitReached('projects', limit, developer.plan)
        }
        const now = clock.now()
        const project: Project = {
          id: newId('prj'),
          developerId: developer.id,
          name: input.name,
          description: input.description ?? null,
          createdAt: now,
          updatedAt: now,
        }
        await tx.projects.insert(project)
        const { id: targetId, name: targetName } = project
        await addAuditEntry(tx, developer, { action: 'project.created', targetId, targetName })
        return { ...project, applicationCount: 0 }
      })
    },

    /** @throws NOT_FOUND */
    update(developer: Actor, id: string, changes: ProjectChanges): Promise<ProjectWithCount> {
      return store.write(async (tx) => {
        const changed = isId('prj', id) && (await tx.projects.update(developer.id, id, changes, clock.now()))
        const project = changed ? await tx.projects.find(developer.id, id) : undefined
        if (!project) throw notFound('project')
        const details = { action: 'project.updated', targetId: id, targetName: project.name } as const
        await addAuditEntry(tx, developer, { ...details, detail: Object.keys(changes).join(',') })
        return project
      })
    },

    /** @throws NOT_FOUND; CONFLICT (PROJECT_NOT_EMPTY) the project has applications */
    delete(developer: Actor, id: string): Promise<void> {
      return store.write(async (tx) => {
        if (!isId('prj', id)) throw notFound('project')
        await tx.projects.lock(id)
        const project = await tx.projects.find(developer.id, id)
        if (!project) throw notFound('project')
        if (await tx.projects.deleteIfEmpty(developer.id, id)) {
          await addAuditEntry(tx, developer, {
            action: 'project.deleted',
            targetId: id,
            targetName: project.name,
          })
          return
        }
        throw new ServiceError('CONFLICT', 'This project still has applications. Delete them first.', {
          reason: 'PROJECT_NOT_EMPTY',
        })
      })
    },
  }
}

/** Builds the error for a reached plan limit. @param resource the API's name of the limited resource */
export const planLimitReached = (resource: 'projects' | 'applications', limit: number, plan: string) =>
  new ServiceError(
    'PLAN_LIMIT_REACHED',
    `Your plan allows at most ${limit} ${resource}. Delete one, or ask for a larger plan.`,
    { metadata: { resource, limit, plan } },
  )
