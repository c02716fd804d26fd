import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { InboxItem, InboxService } from '../../domain/otp/inbox.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { type Paginate, formatTime } from '../pagination.ts'
import { nullable, object, page, pageQuery, timestamp } from '../schemas.ts'

const item = object(
  {
    id: Type.String(),
    requestId: nullable(Type.String({ description: 'Null if another developer sent the message.' })),
    appId: nullable(Type.String()),
    phone: Type.String(),
    code: nullable(Type.String({ description: 'Null once the OTP request has ended.' })),
    text: nullable(Type.String()),
    sentAt: timestamp,
    expiresAt: timestamp,
  },
  'InboxItem',
)

const present = (row: InboxItem) => ({
  ...row,
  sentAt: formatTime(row.sentAt),
  expiresAt: formatTime(row.expiresAt),
})

/** Route that lists inbox messages. */
export function inboxRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  paginate: Paginate
  inbox: InboxService
}) {
  return new Elysia({ prefix: '/v1/inbox' })
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/',
      ({ developer, path, query }) =>
        services.paginate(
          { developer, path, query },
          (page) => services.inbox.list(developer, page),
          present,
        ),
      {
        query: object(pageQuery),
        response: { 200: page(item) },
        detail: {
          tags: ['Inbox'],
          security: [{ console: [] }],
          operationId: 'listInbox',
          summary: 'List inbox messages of the last 24 hours, newest first',
          description:
            'Lists the messages that reached no phone: those to virtual numbers, of test applications and, while no provider is configured, of live ones. The code and the text are null once the OTP request has ended.',
        },
      },
    )
}
