import { Elysia, type AnyElysia } from 'elysia'
import { swagger } from '@elysiajs/swagger'
import { completeDocument } from './document.ts'
import type { GeneratedDocument } from './generated.ts'
import { documentation } from './info.ts'

/**
 * Builds the OpenAPI document of the routes.
 *
 * @param publicUrl where clients reach the server; null if the operator did not say
 * @param nextTurn see `completeDocument`
 */
export async function buildDocument(
  api: AnyElysia,
  about: { version: string; publicUrl: string | null },
  nextTurn: () => Promise<void>,
): Promise<object> {
  const generator = new Elysia()
    .use(api)
    .use(swagger({ path: '/page', specPath: '/document', documentation, excludeStaticFile: false }))
  const response = await generator.handle(new Request('http://localhost/document'))
  await nextTurn()
  // The plugin generated it, so its shape is known.
  return completeDocument((await response.json()) as GeneratedDocument, about, nextTurn)
}
