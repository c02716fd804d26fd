import { Type, type Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { logTypes, type LogType } from '../../shared/event-kinds.ts'
import type { ApplicationService } from '../../domain/apps/applications.ts'
import type { JsonText } from '../../shared/json.ts'
import type { RequestEntry } from '../../domain/log/request-log.ts'
import { attemptsMax } from '../../domain/model/code.ts'
import { parseRefusedSends } from '../../domain/model/refused-sends.ts'
import { parseAttempt } from '../../domain/model/request-history.ts'
import type { DeliveryTry } from '../../domain/model/delivery.ts'
import { formatPrice, type MessageCost } from '../../domain/model/price.ts'
import type { LogService } from '../../domain/log/events.ts'
import { presentChoice, routeChoice } from '../route-choice.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { type Paginate, formatTime } from '../pagination.ts'
import {
  environmentQuery,
  idQuery,
  jsonText,
  messageChannel,
  nullable,
  object,
  oneOf,
  page,
  pageQuery,
  timestamp,
} from '../schemas.ts'

/** Schema of a log entry. */
export const logEntry = object(
  {
    id: Type.String(),
    type: Type.String(),
    appId: nullable(Type.String()),
    requestId: nullable(
      Type.String({
        description:
          'The OTP request; of a `message.` type, the id of the message; of `otp.refused`, the request that the refused sends follow.',
      }),
    ),
    phone: nullable(Type.String()),
    status: nullable(Type.String({ description: 'Status of the OTP request after the event.' })),
    detail: nullable(
      Type.String({ description: 'More about the event, such as `1/5` for the first of five attempts.' }),
    ),
    at: timestamp,
    attempt: Type.Optional(
      Type.Integer({ description: 'Of `otp.attempt_failed`: number of this wrong code, from 1.' }),
    ),
    attemptsMax: Type.Optional(
      Type.Integer({ description: 'Of `otp.attempt_failed`: attempts that a request has.' }),
    ),
    attemptsRemaining: Type.Optional(
      Type.Integer({ description: 'Of `otp.attempt_failed`: attempts that are left.' }),
    ),
    reason: Type.Optional(
      Type.String({
        description:
          'Of `otp.refused`: what refused last, `APP_RATE`, `PHONE_SEND_BUDGET`, `CHALLENGE_REQUIRED` or `CHALLENGE_FAILED`.',
      }),
    ),
    count: Type.Optional(
      Type.Integer({ description: 'Of `otp.refused`: sends that were refused one after another.' }),
    ),
    since: Type.Optional({ ...timestamp, description: 'Of `otp.refused`: time of the first of them.' }),
    nextAt: Type.Optional({
      ...timestamp,
      description: 'Of `otp.refused`: time from which the limit of the last refusal admits another send.',
    }),
    channel: Type.Optional({
      ...messageChannel,
      description: 'Of `delivery.attempted`: channel of the message.',
    }),
    provider: Type.Optional(
      Type.String({ description: 'Of `delivery.attempted`: name of the provider that was asked.' }),
    ),
    providerMessageId: Type.Optional(
      nullable(
        Type.String({
          description:
            "Of `delivery.attempted`: the provider's id of the message; null if it gave none, or the phone number was erased.",
        }),
      ),
    ),
    outcome: Type.Optional({
      ...oneOf(['accepted', 'refused', 'uncertain']),
      description:
        'Of `delivery.attempted`: what the provider said. `uncertain`: it may have the message, so that no other is asked for now.',
    }),
    error: Type.Optional(
      nullable(
        Type.String({
          description:
            'Of `delivery.attempted`: why the provider did not accept the message, such as `unreachable`. With the outcome `accepted`: why the message did not arrive, as a receipt said later; the next attempt followed.',
        }),
      ),
    ),
    providerReply: Type.Optional(
      nullable(
        Type.String({
          description:
            'Of `delivery.attempted`: the first 200 characters of what the provider said in a refusal, without codes, phone numbers and credentials; null if otpd does not know it.',
        }),
      ),
    ),
    latencyMs: Type.Optional(
      Type.Integer({
        description: "Of `delivery.attempted`: milliseconds until the provider's response.",
      }),
    ),
    interrupted: Type.Optional(
      Type.Boolean({
        description:
          'Of `delivery.attempted`: true if one or more attempts before it did not end, because the server was killed. Their providers may have sent the code already, so it can arrive more than once. Absent otherwise.',
      }),
    ),
    cost: Type.Optional(
      nullable(
        Type.String({
          description:
            'Of `delivery.attempted`: price of the message, as decimal number; null if it is unknown. Absent if the provider refused the message, or the operator has set no currency.',
        }),
      ),
    ),
    costEstimated: Type.Optional(
      Type.Boolean({
        description:
          "Of `delivery.attempted`: whether `cost` is the operator's price, as the provider has named none so far.",
      }),
    ),
    choice: Type.Optional({
      ...routeChoice,
      description:
        'Of `delivery.attempted`: how the strategy of the route came to this provider. Absent without a strategy, and in attempts that follow the first one.',
    }),
  },
  'LogEntry',
)

/** Converts a log entry to its JSON form. */
export const presentLogEntry = (row: RequestEntry): Static<typeof logEntry> => ({
  id: row.id,
  type: row.type,
  appId: row.appId,
  requestId: row.requestId,
  phone: row.phone,
  status: row.status,
  detail: row.detail,
  at: formatTime(row.at),
  ...presentAttempt(row),
  ...presentRefusals(row),
  ...(row.delivery && presentDelivery(row.delivery)),
})

function presentAttempt({ type, detail }: RequestEntry) {
  const attempt = parseAttempt(type, detail)
  return attempt !== undefined && { attempt, attemptsMax, attemptsRemaining: attemptsMax - attempt }
}

function presentRefusals({ type, detail }: RequestEntry) {
  const sends = type === 'otp.refused' && parseRefusedSends(detail)
  if (!sends) return undefined
  const { reason, count, since, nextAt } = sends
  return { reason, count, since: formatTime(since), nextAt: formatTime(nextAt) }
}

const presentDelivery = (delivery: DeliveryTry) => ({
  channel: delivery.channel,
  provider: delivery.provider,
  providerMessageId: delivery.messageId,
  outcome: delivery.outcome,
  error: delivery.error,
  providerReply: delivery.reply,
  latencyMs: delivery.latencyMs,
  ...(delivery.isInterrupted && { interrupted: true }),
  ...(delivery.cost && presentCost(delivery.cost)),
  ...(delivery.choice && { choice: presentChoice(delivery.choice) }),
})

const presentCost = ({ estimatedPrice, chargedPrice }: MessageCost) => {
  const price = chargedPrice ?? estimatedPrice
  return price === null ? { cost: null } : { cost: formatPrice(price), costEstimated: chargedPrice === null }
}

// The store returns the same object for a new entry that is read again.
const texts = new WeakMap<RequestEntry, string>()

/** Writes an entry as JSON once, and keeps the text. */
function writeOnce(entry: RequestEntry): string {
  let text = texts.get(entry)
  if (text === undefined) texts.set(entry, (text = JSON.stringify(presentLogEntry(entry))))
  return text
}

const logPage = page(logEntry)

type ListedPage = { data: RequestEntry[]; pagination: Static<typeof logPage>['pagination'] }

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
  applications: Pick<ApplicationService, 'requireFilter'>
  logs: LogService
}) {
  return new Elysia({ prefix: '/v1/logs' }).use(requireDeveloper(services.authenticateDeveloper)).get(
    '/',
    async ({ developer, path, query, set }) => {
      const { appId, environment, requestId, type, after, order = 'asc' } = query
      await services.applications.requireFilter(developer, appId)
      const filter = { appId, environment, requestId, types: readLogTypes(type), after, order }
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
        appId: idQuery('Only entries of this application.'),
        environment: environmentQuery,
        requestId: idQuery(
          'Only entries of this OTP request, with its delivery attempts: what `GET /v1/otp/{id}/events` lists.',
        ),
        type: logTypeQuery,
        after: idQuery(
          'Id of an entry: returns later entries, the earliest first. Cannot be combined with cursor.',
        ),
        order: Type.Optional({
          ...oneOf(['asc', 'desc']),
          description: 'Order within the page: `asc` (default) is oldest first.',
        }),
      }),
      response: { 200: jsonText(logPage) },
      detail: {
        tags: ['Logs'],
        security: [{ console: [] }],
        operationId: 'listLogs',
        summary: 'List the most recent events, oldest first unless order is desc',
        description:
          'Returns the most recent entries of the event log. `cursor` leads to older pages; `after` returns what came later than an entry, for polling. To follow the log, use the stream.',
      },
    },
  )
}
