import { Type, type TSchema } from '@sinclair/typebox'
import { t } from 'elysia'
import { pageLimitDefault, pageLimitMax } from '../domain/model/pagination.ts'

// TypeBox's own types instead of Elysia's `t`: `t.Integer` turns strings into numbers and blurs the OpenAPI document.

/**
 * An object that has these properties and no others.
 *
 * @param title the name under which it stands, once, in the OpenAPI document
 */
export const object = <T extends Record<string, TSchema>>(properties: T, title?: string) =>
  Type.Object(properties, { additionalProperties: false, ...(title !== undefined && { title }) })

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/**
 * One of these words: an `enum`, which reads better than a union in the OpenAPI document and in an error. Without the
 * default that Elysia adds, which would fill in the first word wherever a caller leaves the field out.
 */
export function oneOf<const T extends [string, ...string[]] | readonly [string, ...string[]]>(words: T) {
  const { default: _first, ...schema } = t.UnionEnum(words, {
    errorText: `Expected one of ${words.join(', ')}`,
  })
  return schema
}

/** RFC 3339, UTC, milliseconds. For answers: it takes a tenth of the time of `format`, which the framework checks by parsing. */
export const timestamp = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
  documentedAs: { type: 'string', format: 'date-time' },
})

/** One character, as people count: one beyond U+FFFF is two units of a JavaScript string. */
const character = '(?:[\\uD800-\\uDBFF][\\uDC00-\\uDFFF]|[^\\uD800-\\uDFFF])'

/** Any text of up to that many characters. */
export const text = (lengthMax: number, errorText: string) =>
  Type.String({
    pattern: `^${character}{0,${lengthMax}}$`,
    errorText,
    documentedAs: { type: 'string', maxLength: lengthMax },
  })

/** A text of which something can be seen. */
export const visibleText = (lengthMax: number, errorText: string) =>
  Type.String({
    pattern: `^(?=[^]*\\S)${character}{1,${lengthMax}}$`,
    errorText,
    documentedAs: { type: 'string', minLength: 1, maxLength: lengthMax, pattern: '\\S' },
  })

export const name = visibleText(80, 'Expected 1 to 80 characters, not only spaces')

/** For the document alone: what reads the header is `idempotencyScope`. */
export const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header' as const,
  description: 'Unique key you choose. A retry within 24 hours returns the original response.',
  // Bare, or as the quoted string of the IETF draft.
  schema: { type: 'string' as const, pattern: '^(?:"[!#-~]{1,255}"|[!#-~]{1,255})$' },
}

export const idParams = object({ id: Type.String() })

export const errorBody = object(
  {
    error: object({
      code: Type.String({
        description: 'Stable machine-readable error code.',
      }),
      message: Type.String({
        description: 'Explanation for people. The wording may change; do not parse it.',
      }),
      traceId: Type.String({ description: 'Id of the request, the same as the X-Request-Id header.' }),
      reason: Type.Optional(Type.String({ description: 'More specific machine-readable reason.' })),
      details: Type.Optional(
        Type.Array(
          object({ in: Type.String(), path: Type.String(), code: Type.String(), message: Type.String() }),
          { description: 'One entry per invalid field.' },
        ),
      ),
      metadata: Type.Optional(
        Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]), {
          description: 'Values behind the message, such as limits and times.',
        }),
      ),
    }),
  },
  'Error',
)

/** The answers that every route may give, whatever it does: also to a query that means nothing to it. */
export const publicErrors = { 400: errorBody, 413: errorBody, 500: errorBody, 503: errorBody }

/** A route for developers: bearer token. 415 also for a body that nobody asked for. */
export const consoleErrors = {
  ...publicErrors,
  401: errorBody,
  403: errorBody,
  404: errorBody,
  415: errorBody,
}

/** A console route that takes a body. */
export const consoleBodyErrors = {
  ...consoleErrors,
  409: errorBody,
  422: errorBody,
}

/** A route for an application's backend: the three headers. */
export const appErrors = {
  ...publicErrors,
  401: errorBody,
  403: errorBody,
  404: errorBody,
  409: errorBody,
  410: errorBody,
  415: errorBody,
  422: errorBody,
  429: errorBody,
  502: errorBody,
}

export const data = <T extends TSchema>(schema: T) => object({ data: schema })

export const page = <T extends TSchema>(item: T) =>
  object({
    data: Type.Array(item),
    pagination: object({
      limit: Type.Integer({ description: 'Items per page.' }),
      nextCursor: nullable(Type.String({ description: 'Cursor of the next page; null on the last page.' })),
    }),
  })

/** Server-sent events, which have no end: for the document alone, as the handler answers with a stream of its own. */
export const eventStream = (description: string) =>
  Type.String({ contentMediaType: 'text/event-stream', description })

export const deleted = data(object({ id: Type.String(), deleted: Type.Literal(true) }))

/** `limit` stays text here: the framework would turn `1e2`, ` 5` and `0x9` into numbers. */
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
      description:
        'The nextCursor of the previous page. A page of a filtered list may be short or empty although more follow: continue until nextCursor is null.',
      errorText: 'Expected the nextCursor of the previous page',
    }),
  ),
}
