import { Elysia } from 'elysia'
import { loadGuideFiles } from '../docs/guide-files.ts'
import { routeNotFound } from './route-errors.ts'

const hiddenRoute = { detail: { hide: true } }

/** Nothing but this server's own files. Pages have no inline style or script. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const contentTypes: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  svg: 'image/svg+xml',
}

const links = { guides: '/docs/', api: '/v1/docs', openapi: '/v1/openapi.json', health: '/v1/health' }

/** Serves the guides below `/docs/`, and leads to them from `/`: browsers by a redirect, other clients by a list of links. */
export function guideRoutes() {
  return new Elysia()
    .get(
      '/',
      ({ request, set }) => {
        set.headers['vary'] = 'Accept'
        if (!request.headers.get('accept')?.includes('text/html')) return { data: links }
        return redirectToGuides()
      },
      hiddenRoute,
    )
    .get('/docs', ({ path }) => (path.endsWith('/') ? serveFile('index') : redirectToGuides()), hiddenRoute)
    .get('/docs/:file', ({ params }) => serveFile(params.file), hiddenRoute)
}

/** Relative, so that it also works below a path of a proxy. */
const redirectToGuides = () => new Response(null, { status: 302, headers: { location: 'docs/' } })

/** @param name a guide, or a file with its ending. @throws NOT_FOUND */
async function serveFile(name: string): Promise<Response> {
  const files = await loadGuideFiles()
  const fileName = name.includes('.') ? name : `${name}.html`
  const file = Object.hasOwn(files, fileName) ? files[fileName] : undefined
  if (!file || (fileName === name && name.endsWith('.html'))) throw routeNotFound()
  return new Response(file, {
    headers: {
      'content-type': contentTypes[fileName.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
      'content-security-policy': pagePolicy,
      'cache-control': 'max-age=300',
    },
  })
}
