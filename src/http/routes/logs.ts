import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { logTypes, type LogType } from '../../shared/event-kinds.ts'
import type { LogEntry } from '../../domain/model/log-entry.ts'
import type { LogService } from '../../domain/log/events.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { type Paginate, formatTime } from '../pagination.ts'
import { consoleErrors, nullable, object, oneOf, page, pageQuery, timestamp } from '../schemas.ts'

/** Schema of a log entry. */
export const logEntry = object(
  {
    id: Type.String(),
    type: Type.String(),
    appId: nullable(Type.String()),
    requestId: nullable(Type.String()),
    phone: nullable(Type.String()),
    status: nullable(Type.String({ description: 'Status of the OTP request after the event.' })),
    detail: nullable(Type.String()),
    at: timestamp,
  },
  'LogEntry',
)

type PresentedEntry = ReturnType<typeof toPresented>

const toPresented = (row: LogEntry) => ({
  id: row.id,
  type: row.type,
  appId: row.appId,
  requestId: row.requestId,
  phone: row.phone,
  status: row.status,
  detail: row.detail,
  at: formatTime(row.at),
})

// The store returns the same object for an entry that is read again.
const presented = new WeakMap<LogEntry, PresentedEntry>()
const texts = new WeakMap<PresentedEntry, string>()

/** Converts a log entry to its JSON form. */
export function presentLogEntry(row: LogEntry): PresentedEntry {
  let entry = presented.get(row)
  if (!entry) presented.set(row, (entry = toPresented(row)))
  return entry
}

function toText(entry: PresentedEntry): string {
  let text = texts.get(entry)
  if (text === undefined) texts.set(entry, (text = JSON.stringify(entry)))
  return text
}

/** Only the handler below makes pages; errors have no data. */
const isLogPage = (value: unknown): value is { data: PresentedEntry[]; pagination: object } =>
  typeof value === 'object' && value !== null && 'data' in value

const typePattern = `(${logTypes.join('|').replaceAll('.', '\\.')})`

/** Query parameter that filters by event type. */
export const logTypeQuery = Type.Optional(
  Type.String({
    pattern: `^${typePattern}(,${typePattern})*$`,
    description: 'One or more types, separated by commas.',
    errorText: `Expected one or more of these types, separated by commas: ${logTypes.join(', ')}`,
  }),
)

/** Splits a list of types that was validated against `logTypeQuery`. */
export const readLogTypes = (text: string | undefined): LogType[] | undefined =>
  text === undefined ? undefined : logTypes.filter((type) => text.split(',').includes(type))

/** Route that lists the event log. */
export function logRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  paginate: Paginate
  logs: LogService
}) {
  return new Elysia({ prefix: '/v1/logs' }).use(requireDeveloper(services.authenticateDeveloper)).get(
    '/',
    ({ developer, path, query }) => {
      const { appId, type, after, order = 'asc' } = query
      const filter = { appId, types: readLogTypes(type), after, order }
      return services.paginate(
        { developer, path, query },
        (page) => services.logs.list(developer, { ...page, ...filter }),
        presentLogEntry,
      )
    },
    {
      // Serializing the whole page each time would take as long as all the rest.
      mapResponse: ({ responseValue }) =>
        isLogPage(responseValue)
          ? new Response(
              `{"data":[${responseValue.data.map(toText).join(',')}],"pagination":${JSON.stringify(responseValue.pagination)}}`,
              { headers: { 'content-type': 'application/json' } },
            )
          : undefined,
      query: object({
        ...pageQuery,
        appId: Type.Optional(
          Type.String({ minLength: 1, maxLength: 64, description: 'Only entries of this application.' }),
        ),
        type: logTypeQuery,
        after: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 64,
            description:
              'Id of an entry: returns later entries, the earliest first. Cannot be combined with cursor.',
          }),
        ),
        order: Type.Optional({
          ...oneOf(['asc', 'desc']),
          description: 'Order within the page: `asc` (default) is oldest first.',
        }),
      }),
      response: { 200: page(logEntry), ...consoleErrors },
      detail: {
        tags: ['Logs'],
        security: [{ console: [] }],
        operationId: 'listLogs',
        summary: 'List the most recent events, oldest first unless order is desc',
      },
    },
  )
}
