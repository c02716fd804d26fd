import { FormatRegistry, Type, type Static, type TSchema } from '@sinclair/typebox'
import { t } from 'elysia'
import type { JsonText } from '../shared/json.ts'
import { parseTime } from '../shared/times.ts'
import { pageLimitDefault, pageLimitMax } from '../domain/model/pagination.ts'
import type { ErrorCode } from '../domain/model/errors.ts'
import { errorCodes } from './errors.ts'
import { channels, environments, type Channel } from '../shared/otp-values.ts'

// Uses TypeBox directly instead of Elysia's `t`: `t.Integer` coerces strings and obscures the OpenAPI document.

/**
 * Creates the schema of an object without additional properties.
 *
 * @param title makes it a component of that name in the OpenAPI document
 */
export const object = <T extends Record<string, TSchema>>(properties: T, title?: string) =>
  Type.Object(properties, { additionalProperties: false, ...(title !== undefined && { title }) })

/** Allows null in addition to a schema. */
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/**
 * Creates the schema of an enum, which reads better than a union in the OpenAPI document and in errors. Removes the
 * default that Elysia adds: it would replace an omitted field with the first value.
 */
export function oneOf<const T extends [string, ...string[]] | readonly [string, ...string[]]>(words: T) {
  const { default: _first, ...schema } = t.UnionEnum(words, {
    errorText: `Expected one of ${words.join(', ')}`,
  })
  return schema
}

/** RFC 3339 in UTC with milliseconds, for responses. The pattern takes a tenth of the time that checking `format` does. */
export const timestamp = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
  documentedAs: { type: 'string', format: 'date-time' },
})

FormatRegistry.Set('existing-time', (text) => !Number.isNaN(parseTime(text)))

/** RFC 3339. The framework's `date-time` also accepts a bare date, and days that do not exist. */
export const dateTime = Type.String({
  format: 'existing-time',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$',
  errorText: 'Expected a time such as 2026-11-20T12:00:00Z',
  documentedAs: { type: 'string', format: 'date-time' },
})

/** One Unicode code point; beyond U+FFFF it is a surrogate pair of the JavaScript string. */
const character = '(?:[\\uD800-\\uDBFF][\\uDC00-\\uDFFF]|[^\\uD800-\\uDFFF])'

/** Text of up to `lengthMax` code points. */
export const text = (lengthMax: number, errorText: string) =>
  Type.String({
    pattern: `^${character}{0,${lengthMax}}$`,
    errorText,
    documentedAs: { type: 'string', maxLength: lengthMax },
  })

/** Characters of Unicode's category Cc, such as line breaks. */
const control = '\\x00-\\x1f\\x7f-\\x9f'

/** White space, a character that is none, and others: no control characters, and no two ways to match a text. */
const visibleLine = `^[^\\S${control}]*[^\\s${control}][^${control}]*$`

/** Text of 1 to `lengthMax` code points, not only white space, without control characters: they could forge lines of a list. */
export const visibleText = (lengthMax: number, errorText: string) =>
  Type.String({
    pattern: `(?=${visibleLine})^${character}{1,${lengthMax}}$`,
    errorText,
    documentedAs: { type: 'string', minLength: 1, maxLength: lengthMax, pattern: visibleLine },
  })

/** Name of a project, an application, an API token or a developer. */
export const name = visibleText(80, 'Expected 1 to 80 characters, not only spaces, without line breaks')

/** Documents the header; `createIdempotencyReader` reads it. */
export const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header' as const,
  description:
    'Unique key you choose. A retry within 24 hours returns the original response, if the call succeeded or made an OTP request; any other refusal is judged again.',
  // Bare, or the quoted string of the IETF draft.
  schema: { type: 'string' as const, pattern: '^(?:"[!#-~]{1,255}"|[!#-~]{1,255})$' },
}

export const countryQuery = Type.Optional(
  Type.String({
    pattern: '^[A-Za-z]{2}$',
    errorText: 'Expected the two-letter code of a country, such as GB',
    description:
      'Country of a number that is written without its country code: ISO 3166-1 alpha-2. Lists take it with `phone` only.',
  }),
)

export const country = Type.Optional(
  Type.String({
    pattern: '^[A-Za-z]{2}$',
    format: 'country',
    errorText: 'Expected the two-letter code of a country, such as GB',
    description:
      "Country of a phone that is written without its country code: ISO 3166-1 alpha-2. If omitted, the application's `defaultCountry`.",
  }),
)

export const idParams = object({ id: Type.String() })

/** Query parameter with the id of a resource. */
export const idQuery = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 64, description }))

/** Invalid fields of a request. */
export const errorDetails = Type.Optional(
  Type.Array(
    object(
      { in: Type.String(), path: Type.String(), code: Type.String(), message: Type.String() },
      'ErrorDetail',
    ),
    { description: 'One entry per invalid field.' },
  ),
)

export const errorBody = object(
  {
    error: object(
      {
        code: Type.Unsafe<ErrorCode>(Type.String({ enum: errorCodes })),
        message: Type.String({
          description: 'Explanation for people. The wording may change; do not parse it.',
        }),
        traceId: Type.String({
          description: "The request's X-Request-Id or, if it had a traceparent header, its trace id.",
        }),
        reason: Type.Optional(Type.String({ description: 'More specific machine-readable reason.' })),
        details: errorDetails,
        metadata: Type.Optional(
          Type.Record(
            Type.String(),
            Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]),
            {
              description: 'Values behind the message, such as limits and times.',
            },
          ),
        ),
      },
      'Error',
    ),
  },
  'ErrorResponse',
)

/** Response body with a single result. */
export const data = <T extends TSchema>(schema: T) => object({ data: schema })

/** Response body of a list. */
export const page = <T extends TSchema>(item: T) =>
  object({
    data: Type.Array(item),
    pagination: object(
      {
        limit: Type.Integer({ description: 'Items per page.' }),
        nextCursor: nullable(Type.String({ description: 'Cursor of the next page; null on the last page.' })),
      },
      'Pagination',
    ),
  })

/** Schema of a response that the handler writes as JSON itself. The framework neither checks nor writes it. */
export const jsonText = <T extends TSchema>(schema: T) =>
  Type.Unsafe<JsonText<Static<T>>>(Type.String({ textOf: schema }))

/** Documents a response of server-sent events; the handler returns the stream itself. */
export const eventStream = (description: string) =>
  Type.String({ contentMediaType: 'text/event-stream', description })

export const deleted = data(object({ id: Type.String(), deleted: Type.Boolean() }, 'Deletion'))

/** Query parameter that filters by environment. */
export const environmentQuery = Type.Optional({
  ...oneOf(environments),
  description: 'Only what live or test applications did. Without it, both.',
})

/** Query parameters of lists. `limit` is text here, because the framework would accept `1e2`, ` 5` and `0x9` as numbers. */
export const pageQuery = {
  limit: Type.Optional(
    Type.String({
      pattern: '^([1-9][0-9]?|1[0-9][0-9]|200)$',
      errorText: 'Expected a whole number from 1 to 200',
      documentedAs: {
        type: 'integer',
        minimum: 1,
        maximum: pageLimitMax,
        default: pageLimitDefault,
        description: 'Items per page.',
      },
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'The nextCursor of the previous page.',
      errorText: 'Expected the nextCursor of the previous page',
    }),
  ),
}

/** Channel of a message, in a response. */
export const messageChannel = Type.Unsafe<Channel>(oneOf(channels))
