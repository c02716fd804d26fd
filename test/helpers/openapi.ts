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
  /** With `{name}` for each parameter. */
  path: string
  /** Of the JSON body that it takes, if it takes one. */
  body: Schema | undefined
}

/** The document that a server gives out, and what it says of requests and answers. */
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

    /** Whether the document allows this body. */
    acceptsBody: (operation: Operation, body: unknown) =>
      operation.body !== undefined && findSchemaFaults(operation.body, body, schemas, false).length === 0,

    /** What is wrong with an answer: a status that is not documented, a field that is not declared, … */
    findResponseFaults(operation: Operation, status: number, body: unknown): string[] {
      const documented = operation.responses[status]
      if (!documented) return [`${status} is not documented`]
      if ('text/event-stream' in documented.content) return []
      const schema = documented.content['application/json']?.schema
      return schema ? findSchemaFaults(schema, body, schemas, true) : [`${status} has no schema`]
    },

    /** What is wrong with an error that belongs to no operation, like that of an unknown route. */
    findErrorBodyFaults: (body: unknown) =>
      findSchemaFaults({ $ref: '#/components/schemas/Error' }, body, schemas, true),
  }
}
