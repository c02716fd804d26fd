import type { ErrorCode } from '../../src/domain/model/errors.ts'
import { findSchemaFaults, type Schema } from './json-schema.ts'

type OpenApiDocument = {
  openapi: string
  info: { title: string; version: string; description: string }
  servers: Array<{ url: string }>
  tags: Array<{ name: string; description?: string }>
  paths: Record<string, Record<string, DocumentedOperation>>
  components: {
    schemas: Record<string, Schema>
    securitySchemes: Record<string, { description?: string }>
    headers: Record<string, { description?: string }>
    examples: Record<string, ErrorExample>
  }
}

/** Example of an error response: its whole body. */
type ErrorExample = {
  summary: string
  value: { error: { code: ErrorCode; message: string; reason?: string } }
}

type DocumentedOperation = {
  operationId: string
  summary: string
  description: string
  tags: string[]
  /** By event, then by the expression of the URL. */
  callbacks?: Record<string, Record<string, { post: DocumentedOperation }>>
  security: Array<Record<string, string[]>>
  parameters?: Array<{
    name: string
    in: 'path' | 'query' | 'header'
    required?: boolean
    description?: string
    schema: Schema
  }>
  requestBody?: { required: boolean; content: Record<string, { schema: Schema; example?: unknown }> }
  responses: Record<
    string,
    {
      description: string
      headers: object
      content: Record<string, { schema: Schema; examples?: Record<string, { $ref: string }> }>
    }
  >
}

export type Operation = DocumentedOperation & {
  method: string
  /** Path template, with `{name}` for each parameter. */
  path: string
  /** Schema of the JSON request body, if the operation has one. */
  body: Schema | undefined
}

/** Reads the OpenAPI document of a server and validates requests and responses against it. */
export async function readOpenApi(get: (path: string) => Promise<string>) {
  const document: OpenApiDocument = JSON.parse(await get('/v1/openapi.json'))
  const { schemas } = document.components
  const resolve = (schema: Schema | undefined) =>
    schema?.$ref === undefined ? schema : schemas[schema.$ref.replace('#/components/schemas/', '')]
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Operation => {
      const body = resolve(operation.requestBody?.content['application/json']?.schema)
      return { ...operation, method: method.toUpperCase(), path, body }
    }),
  )

  /** Lists the examples of the errors that an operation documents for a status. */
  const errorExamples = (operation: DocumentedOperation, status: number | string): ErrorExample[] =>
    Object.values(operation.responses[status]?.content['application/json']?.examples ?? {}).flatMap(
      ({ $ref }) => document.components.examples[$ref?.replace('#/components/examples/', '')] ?? [],
    )

  /** An error that the operation does not list, by its code and reason. */
  function findErrorFaults(operation: Operation, status: number, body: unknown): string[] {
    const { error } = body as { error: ErrorExample['value']['error'] | string }
    // OAuth's own form.
    if (typeof error === 'string' || operation.tags.includes('Login')) return []
    const isListed = errorExamples(operation, status).some(
      ({ value }) => value.error.code === error.code && value.error.reason === error.reason,
    )
    return isListed ? [] : [`${error.code} (${error.reason}) is not among its errors`]
  }

  return {
    document,
    operations,

    /** True if the document allows this body. */
    acceptsBody: (operation: Operation, body: unknown) =>
      operation.body !== undefined && findSchemaFaults(operation.body, body, schemas, false).length === 0,

    /** Lists faults of a response: an undocumented status, an undeclared field, … */
    findResponseFaults(operation: Operation, status: number, body: unknown): string[] {
      const documented = operation.responses[status]
      if (!documented) return [`${status} is not documented`]
      if ('text/event-stream' in documented.content) return []
      const { schema } = documented.content['application/json'] ?? {}
      if (!schema) return [`${status} has no schema`]
      const faults = findSchemaFaults(schema, body, schemas, true)
      return status < 400 || faults.length > 0 ? faults : findErrorFaults(operation, status, body)
    },

    errorExamples,

    /** Lists faults of an error that belongs to no operation, such as that of an unknown route. */
    findErrorBodyFaults: (body: unknown) =>
      findSchemaFaults({ $ref: '#/components/schemas/ErrorResponse' }, body, schemas, true),
  }
}
