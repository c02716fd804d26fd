import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { ProjectService } from '../../domain/apps/projects.ts'
import type { ProjectWithCount } from '../../domain/model/project.ts'
import { changesBody } from '../field-schemas.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { setReplayedHeader, type ReadIdempotency } from '../idempotency.ts'
import { jsonBody } from '../json-body.ts'
import { type Paginate, formatTime } from '../pagination.ts'
import {
  data,
  deleted,
  idempotencyKey,
  idParams,
  name,
  nullable,
  object,
  page,
  pageQuery,
  text,
  timestamp,
} from '../schemas.ts'

const description = nullable(text(280, 'Expected up to 280 characters, or null'))

const project = object(
  {
    id: Type.String(),
    name: Type.String(),
    description: nullable(Type.String()),
    applicationCount: Type.Integer(),
    createdAt: timestamp,
    updatedAt: timestamp,
  },
  'Project',
)

const present = (row: ProjectWithCount) => ({
  id: row.id,
  name: row.name,
  description: row.description,
  applicationCount: row.applicationCount,
  createdAt: formatTime(row.createdAt),
  updatedAt: formatTime(row.updatedAt),
})

/** Routes that manage projects. */
export function projectRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  readIdempotency: ReadIdempotency
  paginate: Paginate
  projects: ProjectService
}) {
  const { projects } = services
  const detail = { tags: ['Projects'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/projects' })
    .use(jsonBody)
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/',
      ({ developer, path, query }) =>
        services.paginate({ developer, path, query }, (page) => projects.list(developer, page), present),
      {
        query: object(pageQuery),
        response: { 200: page(project) },
        detail: {
          ...detail,
          operationId: 'listProjects',
          summary: 'List projects, newest first',
          description: 'Lists your projects with the number of their applications.',
        },
      },
    )
    .post(
      '/',
      async ({ developer, body, headers, set }) => {
        const scope = services.readIdempotency(headers, developer.id, 'POST /v1/projects', body)
        const result = await projects.create(developer, body, scope)
        setReplayedHeader(set.headers, result.replayed)
        set.status = 201
        return { data: present(result.value) }
      },
      {
        body: object({ name, description: Type.Optional(description) }),
        response: { 201: data(project) },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'createProject',
          summary: 'Create a project',
          description: 'Creates a project, which groups applications. Counts towards the limit of your plan.',
        },
      },
    )
    .get(
      '/:id',
      async ({ developer, params }) => ({ data: present(await projects.get(developer, params.id)) }),
      {
        params: idParams,
        response: { 200: data(project) },
        detail: {
          ...detail,
          operationId: 'getProject',
          summary: 'Get a project',
          description: 'Returns one project.',
        },
      },
    )
    .patch(
      '/:id',
      async ({ developer, params, body }) => ({
        data: present(await projects.update(developer, params.id, body)),
      }),
      {
        params: idParams,
        body: changesBody({ name, description }),
        response: { 200: data(project) },
        detail: {
          ...detail,
          operationId: 'updateProject',
          summary: 'Change the name or description',
          description:
            'Changes the fields that you send and leaves all others as they are. Null clears the description.',
        },
      },
    )
    .delete(
      '/:id',
      async ({ developer, params }) => {
        await projects.delete(developer, params.id)
        return { data: { id: params.id, deleted: true } }
      },
      {
        params: idParams,
        response: { 200: deleted },
        detail: {
          ...detail,
          operationId: 'deleteProject',
          summary: 'Delete a project that has no applications',
          description: 'Deletes a project. Delete its applications first.',
        },
      },
    )
}
