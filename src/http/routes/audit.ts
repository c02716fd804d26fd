import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { auditActions, type AuditEntry, type AuditService } from '../../domain/accounts/audit.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { pageResponse, readPage, formatTime } from '../pagination.ts'
import { consoleErrors, nullable, object, oneOf, page, pageQuery, timestamp } from '../schemas.ts'

const auditEntry = object(
  {
    id: Type.String(),
    action: oneOf(auditActions),
    actorId: nullable(
      Type.String({
        description: 'The developer who did it. Null: the operator did, or somebody who failed to log in.',
      }),
    ),
    targetId: nullable(Type.String({ description: 'What it was done to.' })),
    targetName: nullable(Type.String({ description: 'As it was called then.' })),
    detail: nullable(
      Type.String({ description: 'The fields that were changed, the credential, or the way of the login.' }),
    ),
    source: oneOf(['api', 'host', 'server']),
    ip: nullable(Type.String({ description: 'Of the client; null where no call did it.' })),
    userAgent: nullable(Type.String()),
    traceId: nullable(Type.String({ description: 'The X-Request-Id of the call.' })),
    at: timestamp,
  },
  'AuditEntry',
)

const present = (row: AuditEntry) => ({
  id: row.id,
  action: row.action,
  actorId: row.actorId,
  targetId: row.targetId,
  targetName: row.targetName,
  detail: row.detail,
  source: row.source,
  ip: row.ip,
  userAgent: row.userAgent,
  traceId: row.traceId,
  at: formatTime(row.at),
})

export function auditRoutes(services: { authenticateDeveloper: AuthenticateDeveloper; audit: AuditService }) {
  return new Elysia({ prefix: '/v1/audit' }).use(requireDeveloper(services.authenticateDeveloper)).get(
    '/',
    async ({ developer, query }) => {
      const { action, targetId } = query
      return pageResponse(
        await services.audit.list(developer, { action, targetId }, readPage(query)),
        present,
      )
    },
    {
      query: object({
        ...pageQuery,
        action: Type.Optional(oneOf(auditActions)),
        targetId: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
      }),
      response: { 200: page(auditEntry), ...consoleErrors },
      detail: {
        tags: ['Audit'],
        security: [{ console: [] }],
        operationId: 'listAudit',
        summary: 'Who created, changed, rotated, deleted or logged in, and from where, newest first',
      },
    },
  )
}
