import { exampleOfError } from './error-examples.ts'

/** What the plugin that reads the routes makes of them: an OpenAPI document, or nearly one. */
export type GeneratedDocument = {
  info: object
  tags: object[]
  components: { securitySchemes: object }
  paths: Record<string, Record<string, Generated>>
}

type Generated = {
  operationId: string
  summary?: string
  description?: string
  tags?: string[]
  security?: object[]
  parameters?: Array<{ name: string; schema: unknown }>
  requestBody?: { content: Record<string, { schema: unknown }> }
  responses: Record<string, { title?: string; content?: Record<string, { schema: object }> }>
}

/**
 * Makes the plugin's document a right and a readable one. OpenAPI 3.1, because the schemas are JSON Schema, which
 * earlier versions do not embed.
 *
 * - Bodies are JSON alone, where the plugin lists three media types for each; what else an answer is, its schema says
 *   as `contentMediaType`.
 * - A schema with a title stands once, under that name.
 * - Objects in answers are open: a client has to expect what later versions add.
 */
export function completeDocument(generated: GeneratedDocument, version: string): object {
  const named = new Map<string, unknown>()
  const paths = Object.entries(generated.paths).map(([path, operations]) => [
    // The framework serves a list with and without a slash at its end.
    path.replace(/\/$/, ''),
    Object.fromEntries(
      Object.entries(operations).map(([method, operation]) => [method, completeOperation(operation, named)]),
    ),
  ])
  return {
    openapi: '3.1.0',
    info: { ...generated.info, version },
    servers: [{ url: '/', description: 'The server that this document comes from.' }],
    tags: generated.tags,
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: generated.components.securitySchemes,
      headers: answerHeaders,
      schemas: Object.fromEntries([...named].toSorted(([a], [b]) => a.localeCompare(b))),
    },
  }
}

function completeOperation(operation: Generated, named: Map<string, unknown>): object {
  const { parameters = [], requestBody, responses, ...rest } = operation
  const json = requestBody?.content['application/json']
  return {
    ...rest,
    ...(parameters.length > 0 && {
      parameters: parameters.map((parameter) => ({
        ...parameter,
        schema: tidy(parameter.schema, 'request', named),
      })),
    }),
    ...(requestBody && {
      requestBody: {
        required: true,
        content: tidy(json ? { 'application/json': json } : requestBody.content, 'request', named),
      },
    }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, answer]) => [
        status,
        completeAnswer(status, answer, rest.operationId, named),
      ]),
    ),
  }
}

function completeAnswer(
  status: string,
  { title, content }: Generated['responses'][string],
  operationId: string,
  named: Map<string, unknown>,
): object {
  // The plugin puts the title beside the content.
  const given = { ...content?.['application/json']?.schema, ...(title !== undefined && { title }) }
  const { contentMediaType: mediaType = 'application/json', ...schema }: Record<string, unknown> = given
  const example = title === 'Error' ? exampleOfError(status, operationId) : undefined
  return {
    description: reasons[status] ?? 'Done.',
    headers: Object.fromEntries(
      ['X-Request-Id', ...(statusHeaders[status] ?? [])].map((name) => [
        name,
        { $ref: `#/components/headers/${name}` },
      ]),
    ),
    content: { [String(mediaType)]: { schema: tidy(schema, 'answer', named), ...(example && { example }) } },
  }
}

const reasons: Record<string, string> = {
  201: 'Created.',
  400: 'The request is not valid; retype it.',
  401: 'The credentials are missing, wrong or expired.',
  403: 'Not allowed, whoever asks again.',
  404: 'Absent, or somebody else’s.',
  409: 'Already done, or in the way of something else.',
  410: 'The OTP request has ended; ask for a new code.',
  413: 'The body is too large.',
  415: 'The body is of another media type.',
  422: 'The Idempotency-Key stood on another request.',
  429: 'Too often; wait.',
  500: 'A fault of the service.',
  502: 'Every provider refused to deliver.',
  503: 'Not now; try again.',
}

const statusHeaders: Record<string, string[]> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

const answerHeaders = {
  'X-Request-Id': {
    description: 'Names this call, also in the log of the service.',
    required: true,
    schema: { type: 'string', pattern: '^req_[0-7][0-9a-hjkmnp-tv-z]{25}$' },
  },
  'WWW-Authenticate': { description: 'RFC 9110 §11.6.1.', required: true, schema: { type: 'string' } },
  'Retry-After': {
    description: 'Seconds until the call is worth repeating.',
    schema: { type: 'integer', minimum: 0 },
  },
}

type Side = 'request' | 'answer'

/** A schema as it reads best, and what has a title moved to `named`. */
function tidy(schema: unknown, side: Side, named: Map<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => tidy(item, side, named))
  if (!isObject(schema)) return schema
  if (isObject(schema['documentedAs'])) return schema['documentedAs']
  const { errorText: _, title, ...rest } = schema
  if (side === 'answer' && rest['additionalProperties'] === false) delete rest['additionalProperties']
  const children = Object.entries(rest).map(([key, value]) => [key, tidy(value, side, named)])
  const whole = withExamples(joinAlternatives(Object.fromEntries(children)))
  if (typeof title !== 'string')
    return title === undefined ? whole : { ...whole, title: tidy(title, side, named) }
  named.set(title, whole)
  return { $ref: `#/components/schemas/${title}` }
}

/** What a field holds, by its name, which means the same all over the API. */
const examples: Record<string, unknown> = {
  appId: 'app_01kaaaaaaaeekr1q2v3w4x5y6z',
  clientIp: '192.0.2.1',
  code: '424242',
  company: 'Analytical Engines',
  country: 'US',
  locale: 'en',
  metadata: { order: '1042' },
  otpTtlSeconds: 300,
  phone: '+14155550100',
  projectId: 'prj_01kaaaaaaaeekr1q2v3w4x5y6z',
  requestId: 'otp_01kaaaaaaaeekr1q2v3w4x5y6z',
  ttlSeconds: 300,
  url: 'https://shop.example/hooks/otpd',
}

function withExamples(schema: Record<string, unknown>): Record<string, unknown> {
  const { properties } = schema
  if (!isObject(properties)) return schema
  // An error has whole examples of its own; its words are other things than those of a request.
  if ('traceId' in properties || ('in' in properties && 'path' in properties)) return schema
  const shown = Object.entries(properties).map(([name, property]) => {
    const isFree = isObject(property) && !('enum' in property) && !('const' in property)
    const example = examples[name]
    return [name, isFree && example !== undefined ? { ...property, examples: [example] } : property]
  })
  return { ...schema, properties: Object.fromEntries(shown) }
}

/** Words as an `enum`, and `null` as one more type: a union of schemas says the same less plainly. */
function joinAlternatives(schema: Record<string, unknown>): Record<string, unknown> {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf)) return schema
  const members = anyOf.filter(isObject)
  const others = members.filter(({ type }) => type !== 'null')
  const words = others.flatMap((member) => ('const' in member ? [member['const']] : []))
  const [only] = words.length === others.length ? [{ type: 'string', enum: words }] : others
  if (!only || (words.length === 0 && others.length > 1) || typeof only['type'] !== 'string') return schema
  if (others.length === members.length) return { ...rest, ...only }
  const values = only['enum']
  return {
    ...rest,
    ...only,
    type: [only['type'], 'null'],
    ...(Array.isArray(values) && { enum: [...values, null] }),
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
