import type { RequiredScope } from '../../domain/model/api-token.ts'
import type { ResourceKind } from '../../domain/model/errors.ts'
import { isRecord } from '../../shared/json.ts'
import { resourcesAt } from '../resources.ts'
import { errorBody } from '../schemas.ts'
import { requiredScope } from '../scopes.ts'
import { exampleComponents } from './error-catalogue.ts'
import type { ErrorName } from './error-examples.ts'
import { exampleOf } from './example-of.ts'
import { parameterTexts } from './field-texts.ts'
import type { GeneratedDocument, GeneratedOperation } from './generated.ts'
import { responseHeaders } from './headers.ts'
import { operationErrors } from './operation-errors.ts'
import { describeResponses } from './responses.ts'
import { createSchemaConverter, type JsonSchema } from './schemas.ts'
import { describeWebhooks } from './webhooks.ts'

type Security = Array<Record<string, readonly string[]>>
type Parameter = NonNullable<GeneratedOperation['parameters']>[number]

/**
 * Turns the plugin's document into a valid and complete one. It is OpenAPI 3.1, because earlier versions do not use
 * standard JSON Schema.
 *
 * - Bodies are JSON only; the plugin lists three media types for each. A response of another type declares it as
 *   `contentMediaType` of its schema.
 * - Bodies and their results are components (`schemas.ts`), described by `field-texts.ts`.
 * - Each operation lists the errors that it can respond with, each with an example (`operation-errors.ts`).
 *
 * @param publicUrl where clients reach the server; null if the operator did not say
 * @param nextTurn awaited after each path, which leaves turns of the event loop to others
 */
export async function completeDocument(
  generated: GeneratedDocument,
  { version, publicUrl }: { version: string; publicUrl: string | null },
  nextTurn: () => Promise<void>,
): Promise<object> {
  const components = new Map<string, JsonSchema>()
  const converter = createSchemaConverter(components)
  const errorSchema = converter.convert(errorBody, 'response')
  const usedErrors = new Set<ErrorName>()
  const paths: Array<[string, object]> = []
  for (const [generatedPath, operations] of Object.entries(generated.paths)) {
    // The framework serves lists with and without a trailing slash.
    const path = generatedPath.replace(/\/$/, '')
    const completed = Object.entries(operations).map(([method, operation]) => [
      method,
      completeOperation(operation, method, path),
    ])
    paths.push([path, Object.fromEntries(completed)])
    await nextTurn()
  }
  return {
    openapi: '3.1.0',
    info: { ...generated.info, version },
    servers: [{ url: publicUrl ?? '/', description: 'The server that serves this document.' }],
    tags: generated.tags,
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: generated.components.securitySchemes,
      headers: responseHeaders,
      examples: exampleComponents(usedErrors),
      schemas: Object.fromEntries([...components].toSorted(([a], [b]) => a.localeCompare(b))),
    },
  }

  function completeOperation(operation: GeneratedOperation, method: string, path: string): object {
    const { parameters = [], requestBody, responses: _, ...rest } = operation
    const scope = requiredScope(method, path.replaceAll(/\{(\w+)\}/g, ':$1'))
    const security = withApiToken(operation.security ?? [], scope)
    const errors = operationErrors(operation, method, path, security)
    for (const name of errors) usedErrors.add(name)
    const isScoped = security.some((scheme) => 'apiToken' in scheme)
    return {
      ...rest,
      ...(isScoped && { description: `${rest.description} API tokens need the scope \`${scope}\`.` }),
      security,
      ...(parameters.length > 0 && {
        parameters: parameters.map((parameter) => completeParameter(parameter, operation.operationId, path)),
      }),
      ...(requestBody && { requestBody: completeRequestBody(requestBody, operation.operationId) }),
      ...(operation.operationId === 'createWebhook' && { callbacks: describeWebhooks(converter) }),
      responses: describeResponses(operation, security, errors, converter, errorSchema),
    }
  }

  function completeRequestBody(
    { content }: NonNullable<GeneratedOperation['requestBody']>,
    operationId: string,
  ) {
    const json = content['application/json']
    const bodies = Object.entries(json ? { 'application/json': json } : content)
    const completed = bodies.map(([mediaType, body]) => {
      const schema = converter.convertBody(body.schema, operationId)
      return [mediaType, { schema, example: exampleOf(schema, components) }]
    })
    return { required: true, content: Object.fromEntries(completed) }
  }

  function completeParameter({ schema, ...parameter }: Parameter, operationId: string, path: string) {
    const converted = converter.convert(schema, 'request')
    // Described once, at the parameter.
    const { description: own, ...plain } = isRecord(converted) ? converted : {}
    const { name } = parameter
    const [kind] = name === 'id' ? resourcesAt(path) : []
    const description =
      parameter.description ??
      own ??
      (kind && idTexts[kind]) ??
      parameterTexts[`${operationId}.${name}`] ??
      parameterTexts[name]
    return { ...parameter, ...(description !== undefined && { description }), schema: plain }
  }
}

const idTexts: Readonly<Record<ResourceKind, string>> = {
  project: 'Id of the project.',
  application: 'Id of the application.',
  otpRequest: 'Id of the OTP request.',
  session: 'Id of the session.',
  relayedMessage: 'Id of the message.',
  webhookEndpoint: 'Id of the webhook endpoint.',
  webhookDelivery: 'Id of the webhook delivery.',
  apiToken: 'Id of the API token.',
  guardRule: 'Id of the guard rule.',
  template: 'Name of the template.',
  user: 'Phone number.',
  callback: 'Name of the provider.',
}

/** Adds API tokens to an operation for developers, unless it requires a login. */
const withApiToken = (security: Security, scope: RequiredScope): Security =>
  security.flatMap((scheme) =>
    'console' in scheme && scope !== 'login' ? [scheme, { apiToken: [] }] : [scheme],
  )
