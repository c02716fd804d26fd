import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { LogEntry, LogService } from '../../domain/events.ts'
import { consoleAuth, type ConsoleAuth } from '../console-auth.ts'
import { pageAnswer, readPage, time } from '../pages.ts'
import { consoleErrors, nullable, object, oneOf, page, pageQuery, timestamp } from '../schemas.ts'

const logEntry = object(
  {
    id: Type.String(),
    type: Type.String(),
    appId: nullable(Type.String()),
    requestId: nullable(Type.String()),
    phone: nullable(Type.String()),
    status: nullable(Type.String({ description: 'Of the OTP request, after the event.' })),
    detail: nullable(Type.String()),
    at: timestamp,
  },
  'LogEntry',
)

const present = (row: LogEntry) => ({
  id: row.id,
  type: row.type,
  appId: row.appId,
  requestId: row.requestId,
  phone: row.phone,
  status: row.status,
  detail: row.detail,
  at: time(row.at),
})

export function logRoutes(services: { consoleAuth: ConsoleAuth; logs: LogService }) {
  return new Elysia({ prefix: '/v1/logs' }).use(consoleAuth(services.consoleAuth)).get(
    '/',
    async ({ developer, query }) => {
      const { appId, after, order = 'asc' } = query
      return pageAnswer(
        await services.logs.list(developer, { ...readPage(query), appId, after, order }),
        present,
      )
    },
    {
      query: object({
        ...pageQuery,
        appId: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
        after: Type.Optional(
          Type.String({ minLength: 1, maxLength: 64, description: 'An entry: gives what came later.' }),
        ),
        order: Type.Optional(oneOf(['asc', 'desc'])),
      }),
      response: { 200: page(logEntry), ...consoleErrors },
      detail: {
        tags: ['Logs'],
        security: [{ console: [] }],
        operationId: 'listLogs',
        summary: 'The most recent events, oldest of them first',
      },
    },
  )
}
