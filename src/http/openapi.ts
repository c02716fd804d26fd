import { errorExample } from './error-examples.ts'
import { isRecord } from '../shared/json.ts'
import { requiredScope } from './scopes.ts'

/** The document that the Swagger plugin generates from the routes; not quite valid OpenAPI. */
export type GeneratedDocument = {
  info: object
  tags: object[]
  components: { securitySchemes: object }
  paths: Record<string, Record<string, GeneratedOperation>>
}

type GeneratedOperation = {
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
 * Turns the plugin's document into a valid and readable one. It is OpenAPI 3.1, because earlier versions do not use
 * standard JSON Schema.
 *
 * - Bodies are JSON only; the plugin lists three media types for each. A response of another type declares it as
 *   `contentMediaType` of its schema.
 * - A schema with a title becomes a component of that name and is referenced.
 * - Objects in responses are open, because later versions may add properties.
 */
export function completeDocument(generated: GeneratedDocument, version: string): object {
  const namedSchemas = new Map<string, unknown>()
  const paths = Object.entries(generated.paths).map(([path, operations]) => [
    // The framework serves lists with and without a trailing slash.
    path.replace(/\/$/, ''),
    Object.fromEntries(
      Object.entries(operations).map(([method, operation]) => [
        method,
        completeOperation(
          operation.security
            ? { ...operation, security: withApiToken(operation.security, method, path) }
            : operation,
          namedSchemas,
        ),
      ]),
    ),
  ])
  return {
    openapi: '3.1.0',
    info: { ...generated.info, version },
    servers: [{ url: '/', description: 'The server that serves this document.' }],
    tags: generated.tags,
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: generated.components.securitySchemes,
      headers: responseHeaders,
      schemas: Object.fromEntries([...namedSchemas].toSorted(([a], [b]) => a.localeCompare(b))),
    },
  }
}

/** Adds the scope with which API tokens may call an operation for developers. */
function withApiToken(security: object[], method: string, path: string): object[] {
  return security.flatMap((scheme) => {
    if (!('console' in scheme)) return [scheme]
    const scope = requiredScope(method, path.replaceAll(/\{(\w+)\}/g, ':$1'))
    return scope === 'login' ? [scheme] : [scheme, { apiToken: [scope] }]
  })
}

function completeOperation(operation: GeneratedOperation, namedSchemas: Map<string, unknown>): object {
  const { parameters = [], requestBody, responses, ...rest } = operation
  const json = requestBody?.content['application/json']
  return {
    ...rest,
    ...(parameters.length > 0 && {
      parameters: parameters.map((parameter) => ({
        ...parameter,
        schema: simplifySchema(parameter.schema, 'request', namedSchemas),
      })),
    }),
    ...(requestBody && {
      requestBody: {
        required: true,
        content: simplifySchema(
          json ? { 'application/json': json } : requestBody.content,
          'request',
          namedSchemas,
        ),
      },
    }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [
        status,
        completeResponse(status, response, rest.operationId, namedSchemas),
      ]),
    ),
  }
}

function completeResponse(
  status: string,
  { title, content }: GeneratedOperation['responses'][string],
  operationId: string,
  namedSchemas: Map<string, unknown>,
): object {
  // The plugin moves the title of the schema up into the response.
  const titledSchema = { ...content?.['application/json']?.schema, ...(title !== undefined && { title }) }
  const { contentMediaType: mediaType = 'application/json', ...schema }: Record<string, unknown> =
    titledSchema
  const example = title === 'Error' ? errorExample(status, operationId) : undefined
  return {
    description: statusDescriptions[status] ?? 'Success.',
    headers: Object.fromEntries(
      ['X-Request-Id', ...(statusHeaders[status] ?? [])].map((name) => [
        name,
        { $ref: `#/components/headers/${name}` },
      ]),
    ),
    content: {
      [String(mediaType)]: {
        schema: simplifySchema(schema, 'response', namedSchemas),
        ...(example && { example }),
      },
    },
  }
}

const statusDescriptions: Record<string, string> = {
  201: 'Created.',
  400: 'Invalid request; correct it before you retry.',
  401: 'Credentials are missing, wrong or expired.',
  403: 'Forbidden; retrying will not help.',
  404: 'Not found, or not yours.',
  409: 'Conflicts with the current state.',
  410: 'The OTP request has ended; send a new code.',
  413: 'The body is larger than 64 KiB.',
  415: 'Unsupported media type or content coding of the body.',
  422: 'The Idempotency-Key was used with a different request.',
  429: 'Rate limited; retry after `Retry-After` seconds.',
  500: 'Unexpected server error.',
  502: 'No provider accepted the message.',
  503: 'Temporarily unavailable; retry.',
}

const statusHeaders: Record<string, string[]> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

const responseHeaders = {
  'X-Request-Id': {
    description: 'Unique id of the request, also written to the server log.',
    required: true,
    schema: { type: 'string', pattern: '^req_[0-7][0-9a-hjkmnp-tv-z]{25}$' },
  },
  'WWW-Authenticate': {
    description: 'Expected authentication scheme (RFC 9110 §11.6.1).',
    required: true,
    schema: { type: 'string' },
  },
  'Retry-After': {
    description: 'Seconds to wait before you retry.',
    schema: { type: 'integer', minimum: 0 },
  },
}

type Side = 'request' | 'response'

/** Simplifies a schema for readers, and moves titled schemas to `namedSchemas`. */
function simplifySchema(schema: unknown, side: Side, namedSchemas: Map<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => simplifySchema(item, side, namedSchemas))
  if (!isRecord(schema)) return schema
  if (isRecord(schema['documentedAs'])) return schema['documentedAs']
  if (isRecord(schema['textOf'])) return simplifySchema(schema['textOf'], side, namedSchemas)
  const { errorText: _, title, ...rest } = schema
  if (side === 'response' && rest['additionalProperties'] === false) delete rest['additionalProperties']
  const children = Object.entries(rest).map(([key, value]) => [
    key,
    simplifySchema(value, side, namedSchemas),
  ])
  const simplified = withExamples(joinAlternatives(Object.fromEntries(children)))
  if (typeof title !== 'string')
    return title === undefined
      ? simplified
      : { ...simplified, title: simplifySchema(title, side, namedSchemas) }
  namedSchemas.set(title, simplified)
  return { $ref: `#/components/schemas/${title}` }
}

/** Example values by field name; a name has the same meaning throughout the API. */
const examples: Record<string, unknown> = {
  appId: 'app_01kaaaaaaaeekr1q2v3w4x5y6z',
  clientIp: '192.0.2.1',
  code: '424242',
  company: 'Analytical Engines',
  country: 'US',
  deviceId: 'b1c2e3f4a5',
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
  if (!isRecord(properties)) return schema
  // Errors have complete examples, and their `code` is not an OTP.
  if ('traceId' in properties || ('in' in properties && 'path' in properties)) return schema
  const entries = Object.entries(properties).map(([name, property]) => {
    const isFreeForm = isRecord(property) && !('enum' in property) && !('const' in property)
    const example = examples[name]
    return [name, isFreeForm && example !== undefined ? { ...property, examples: [example] } : property]
  })
  return { ...schema, properties: Object.fromEntries(entries) }
}

/** Rewrites a union of literals as `enum`, and a union with null as a second type: both are easier to read. */
function joinAlternatives(schema: Record<string, unknown>): Record<string, unknown> {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf)) return schema
  const members = anyOf.filter(isRecord)
  const nonNull = members.filter(({ type }) => type !== 'null')
  const constants = nonNull.flatMap((member) => ('const' in member ? [member['const']] : []))
  const [single] = constants.length === nonNull.length ? [{ type: 'string', enum: constants }] : nonNull
  if (!single || (constants.length === 0 && nonNull.length > 1) || typeof single['type'] !== 'string')
    return schema
  if (nonNull.length === members.length) return { ...rest, ...single }
  const values = single['enum']
  return {
    ...rest,
    ...single,
    type: [single['type'], 'null'],
    ...(Array.isArray(values) && { enum: [...values, null] }),
  }
}
