import { Elysia } from 'elysia'
import { loadGuideFiles } from '../docs/guide-files.ts'
import { routeNotFound } from './route-errors.ts'
import { fileResponse } from './static-file.ts'

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
  md: 'text/markdown; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
}

const links = {
  guides: '/docs/',
  llms: '/llms.txt',
  api: '/v1/docs',
  openapi: '/v1/openapi.json',
  health: '/v1/health',
}

/**
 * Serves the guides below `/docs/`, as pages and as Markdown, and their list for language models at `/llms.txt`
 * (llmstxt.org). `/` leads to them: browsers by a redirect, other clients by a list of links.
 */
export function guideRoutes() {
  return new Elysia()
    .get(
      '/',
      ({ request, set }) => {
        set.headers['vary'] = 'Accept'
        if (!wantsPage(request)) return { data: links }
        return redirectToGuides()
      },
      hiddenRoute,
    )
    .get('/llms.txt', ({ request }) => findFile(request, llmsName), hiddenRoute)
    .get(
      '/docs',
      ({ path, request }) => (path.endsWith('/') ? findFile(request, 'index') : redirectToGuides()),
      hiddenRoute,
    )
    .get(
      '/docs/:file',
      async ({ params: { file: name }, request }) => {
        const found = otherPages.includes(name) ? undefined : await findFile(request, name)
        if (found) return found
        if (!wantsPage(request)) throw routeNotFound()
        return findFile(request, notFoundName, 404)
      },
      hiddenRoute,
    )
}

/** Relative, so that it also works below a path of a proxy. */
const redirectToGuides = () => new Response(null, { status: 302, headers: { location: 'docs/' } })

const wantsPage = (request: Request) => request.headers.get('accept')?.includes('text/html') ?? false

/** Name of the page that lists the guides where there is no page. */
const notFoundName = 'not-found'

/** Its links are relative to the root. */
const llmsName = 'llms.txt'

/** Files that have addresses of their own, or none. */
const otherPages = [notFoundName, 'reference', llmsName]

/** @param name a guide, or a file with its ending */
async function findFile(request: Request, name: string, status = 200): Promise<Response | undefined> {
  const files = await loadGuideFiles()
  const fileName = name.includes('.') ? name : `${name}.html`
  const zipped = Object.hasOwn(files, fileName) ? files[fileName] : undefined
  if (!zipped || (fileName === name && name.endsWith('.html'))) return undefined
  const headers = {
    'content-type': contentTypes[fileName.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
    'content-security-policy': pagePolicy,
    'cache-control': 'max-age=300',
  }
  return await fileResponse(request, { zipped, headers }, status)
}
