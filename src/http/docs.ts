import { Elysia, type AnyElysia } from 'elysia'
import { loadGuideFiles } from '../docs/guide-files.ts'
import type { Timers } from '../world/world.ts'
import { fileResponse } from './static-file.ts'

/**
 * Serves the OpenAPI document and its reference page, which Scalar renders. Its scripts are among the guides' files, so
 * the page loads nothing from other hosts.
 *
 * @param api the routes to describe
 * @param timers the document is built in several turns of the event loop, because it takes as long as hundreds of calls
 */
export function docsRoutes(
  api: AnyElysia,
  about: { version: string; publicUrl: string | null },
  { nextTurn }: Pick<Timers, 'nextTurn'>,
) {
  const hiddenRoute = { detail: { hide: true } }
  let zippedDocument: Promise<Uint8Array<ArrayBuffer>> | undefined
  const zipDocument = async () => {
    // Loaded on the first request: it takes 2 MB of memory.
    const { buildDocument } = await import('./openapi/build.ts')
    return Bun.gzipSync(JSON.stringify(await buildDocument(api, about, nextTurn)))
  }

  return new Elysia({ prefix: '/v1' })
    .get(
      '/openapi.json',
      async ({ request }) =>
        fileResponse(request, {
          zipped: await (zippedDocument ??= zipDocument()),
          headers: { 'content-type': 'application/json' },
        }),
      hiddenRoute,
    )
    .get('/docs', ({ request }) => referencePage(request), hiddenRoute)
}

async function referencePage(request: Request): Promise<Response> {
  const { 'reference.html': zipped } = await loadGuideFiles()
  if (zipped === undefined) throw new Error('The page of the API reference was not built.')
  const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': pagePolicy }
  return fileResponse(request, { zipped, headers })
}

/** Scripts are ours alone. Inline styles are allowed, because Scalar adds them; they run no code. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
