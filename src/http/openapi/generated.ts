/** The document that the Swagger plugin generates from the routes; not quite valid OpenAPI. */
export type GeneratedDocument = {
  info: object
  tags: object[]
  components: { securitySchemes: object }
  paths: Record<string, Record<string, GeneratedOperation>>
}

export type GeneratedOperation = {
  operationId: string
  description?: string
  security?: Array<Record<string, readonly string[]>>
  parameters?: Array<{ name: string; in: string; description?: string; schema: unknown }>
  requestBody?: { content: Record<string, { schema: unknown }> }
  responses: Record<string, { title?: string; content?: Record<string, { schema: object }> }>
}
