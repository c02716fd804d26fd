import { Type, type Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { logTypes, type LogType } from '../../shared/event-kinds.ts'
import type { JsonText } from '../../shared/json.ts'
import type { LogEntry } from '../../domain/model/log-entry.ts'
import type { LogService } from '../../domain/log/events.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { type Paginate, formatTime } from '../pagination.ts'
import { consoleErrors, jsonText, nullable, object, oneOf, page, pageQuery, timestamp } from '../schemas.ts'

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

/** Converts a log entry to its JSON form. */
export const presentLogEntry = (row: LogEntry): Static<typeof logEntry> => ({
  id: row.id,
  type: row.type,
  appId: row.appId,
  requestId: row.requestId,
  phone: row.phone,
  status: row.status,
  detail: row.detail,
  at: formatTime(row.at),
})

// The store returns the same object for a new entry that is read again.
const texts = new WeakMap<LogEntry, string>()

/** Writes an entry as JSON once, and keeps the text. */
function writeOnce(entry: LogEntry): string {
  let text = texts.get(entry)
  if (text === undefined) texts.set(entry, (text = JSON.stringify(presentLogEntry(entry))))
  return text
}

const logPage = page(logEntry)

type ListedPage = { data: LogEntry[]; pagination: Static<typeof logPage>['pagination'] }

/** Writes a page as JSON. @param isNewest whether it will be read again */
function writePage({ data, pagination }: ListedPage, isNewest: boolean) {
  const entries = isNewest ? `[${data.map(writeOnce).join()}]` : JSON.stringify(data.map(presentLogEntry))
  return `{"data":${entries},"pagination":${JSON.stringify(pagination)}}` as JsonText<Static<typeof logPage>>
}

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
    async ({ developer, path, query, set }) => {
      const { appId, type, after, order = 'asc' } = query
      const filter = { appId, types: readLogTypes(type), after, order }
      const listed = await services.paginate(
        { developer, path, query },
        (page) => services.logs.list(developer, { ...page, ...filter }),
        (entry) => entry,
      )
      set.headers['content-type'] = 'application/json'
      return writePage(listed, query.cursor === undefined)
    },
    {
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
      response: { 200: jsonText(logPage), ...consoleErrors },
      detail: {
        tags: ['Logs'],
        security: [{ console: [] }],
        operationId: 'listLogs',
        summary: 'List the most recent events, oldest first unless order is desc',
      },
    },
  )
}
