import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { AuditAction, AuditEntry } from '../../domain/model/audit.ts'
import { auditActions } from '../../shared/audit-actions.ts'
import type { AuditService } from '../../domain/accounts/audit.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { type Paginate, formatTime } from '../pagination.ts'
import { idQuery, nullable, object, oneOf, page, pageQuery, timestamp } from '../schemas.ts'

const auditEntry = object(
  {
    id: Type.String(),
    // Nodes of a later version may have stored others.
    action: Type.Unsafe<AuditAction>(Type.String({ documentedAs: { type: 'string', enum: auditActions } })),
    actorId: nullable(
      Type.String({
        description: 'Developer who acted. Null for the operator, and for a failed login.',
      }),
    ),
    targetId: nullable(Type.String({ description: 'Id of the resource that was acted on.' })),
    targetName: nullable(Type.String({ description: 'Name of the resource at that time.' })),
    detail: nullable(
      Type.String({ description: 'Changed fields, type of the credential, or login method.' }),
    ),
    source: oneOf(['api', 'host', 'server']),
    ip: nullable(
      Type.String({ description: 'IP address of the client; null if no API request caused the entry.' }),
    ),
    userAgent: nullable(Type.String()),
    traceId: nullable(Type.String({ description: 'X-Request-Id of the API request.' })),
    tokenId: nullable(
      Type.String({ description: 'API token that was used; null after a login, and for other sources.' }),
    ),
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
  tokenId: row.tokenId,
  at: formatTime(row.at),
})

/** Route that lists the audit trail. */
export function auditRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  paginate: Paginate
  audit: AuditService
}) {
  return new Elysia({ prefix: '/v1/audit' }).use(requireDeveloper(services.authenticateDeveloper)).get(
    '/',
    ({ developer, path, query }) => {
      const { action, targetId } = query
      return services.paginate(
        { developer, path, query },
        (page) => services.audit.list(developer, { action, targetId }, page),
        present,
      )
    },
    {
      query: object({
        ...pageQuery,
        action: Type.Optional(oneOf(auditActions)),
        targetId: idQuery('Only entries for this resource.'),
      }),
      response: { 200: page(auditEntry) },
      detail: {
        tags: ['Audit'],
        security: [{ console: [] }],
        operationId: 'listAudit',
        summary: 'List audit entries, newest first',
        description:
          "Lists who changed what in your account, when and from where: logins, credentials, resources and the operator's commands.",
      },
    },
  )
}
