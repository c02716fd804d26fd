import type { ErrorCode } from '../../src/domain/model/errors.ts'
import { findSchemaFaults, type Schema } from './json-schema.ts'

export type OpenApiDocument = {
  openapi: string
  info: { title: string; version: string }
  servers: Array<{ url: string }>
  tags: Array<{ name: string; description?: string }>
  paths: Record<string, Record<string, DocumentedOperation>>
  components: {
    schemas: Record<string, Schema>
    securitySchemes: Record<string, object>
    headers: Record<string, object>
  }
}

export type DocumentedOperation = {
  operationId: string
  summary: string
  tags: string[]
  security: Array<Record<string, string[]>>
  parameters?: Array<{ name: string; in: 'path' | 'query' | 'header'; required?: boolean; schema: Schema }>
  requestBody?: { required: boolean; content: Record<string, { schema: Schema }> }
  responses: Record<
    string,
    {
      description: string
      headers: object
      content: Record<string, { schema: Schema; example?: { error: { code: ErrorCode } } }>
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
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Operation => {
      const body = operation.requestBody?.content['application/json']?.schema
      return { ...operation, method: method.toUpperCase(), path, body }
    }),
  )
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
      const schema = documented.content['application/json']?.schema
      return schema ? findSchemaFaults(schema, body, schemas, true) : [`${status} has no schema`]
    },

    /** Lists faults of an error that belongs to no operation, such as that of an unknown route. */
    findErrorBodyFaults: (body: unknown) =>
      findSchemaFaults({ $ref: '#/components/schemas/Error' }, body, schemas, true),
  }
}
