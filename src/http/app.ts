import { Elysia } from 'elysia'
import type { AppAuth } from '../domain/app-auth.ts'
import type { ApplicationService } from '../domain/applications.ts'
import type { DeveloperService } from '../domain/developers.ts'
import { ServiceError } from '../domain/errors.ts'
import type { NewId } from '../domain/ids.ts'
import type { ProjectService } from '../domain/projects.ts'
import { answerError, internalMessage, toServiceError } from './errors.ts'
import { bodyBytesMax, tooLarge } from './json-body.ts'
import { applicationRoutes } from './routes/applications.ts'
import { authRoutes, type AuthServices } from './routes/auth.ts'
import { developerRoutes } from './routes/developer.ts'
import { projectRoutes } from './routes/projects.ts'

export type AppServices = AuthServices & {
  newId: NewId
  appAuth: AppAuth
  applications: ApplicationService
  developers: DeveloperService
  projects: ProjectService
  /** Told of every error that is not part of the contract. */
  onBug(error: unknown, traceId: string): void
}

export type App = ReturnType<typeof createApp>

/** The whole HTTP API. Listens to nothing: `handle` takes a request and answers it. */
export function createApp(services: AppServices) {
  const app = new Elysia({ normalize: false })
    .onRequest(({ request, set }) => {
      Object.assign(set.headers, securityHeaders)
      set.headers['x-request-id'] = services.newId('req')
      if (Number(request.headers.get('content-length') ?? 0) > bodyBytesMax) throw tooLarge()
    })
    .onBeforeHandle(({ request }) => refuseRepeatedQuery(request.url))
    .onError(({ code, error, set, request, path }) => {
      const traceId = String(set.headers['x-request-id'])
      // The framework takes the code of an error of ours for its own, so that NOT_FOUND alone tells nothing.
      const known =
        toServiceError(error) ?? (code === 'NOT_FOUND' ? routeError(request.method, path) : undefined)
      if (!known || known.code === 'INTERNAL') services.onBug(error, traceId)
      const answer = answerError(known ?? new ServiceError('INTERNAL', internalMessage), traceId)
      set.status = answer.status
      Object.assign(set.headers, answer.headers)
      if (known?.code === 'METHOD_NOT_ALLOWED') set.headers['allow'] = String(known.metadata?.['allowed'])
      return answer.body
    })
    .use(applicationRoutes(services))
    .use(authRoutes(services))
    .use(developerRoutes(services))
    .use(projectRoutes(services))

  const routeError = createRouteErrors(app.routes)
  return app
}

const securityHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

/** The framework would take the last of several; the caller may have meant another. */
function refuseRepeatedQuery(url: string) {
  const start = url.indexOf('?')
  if (start === -1) return
  const names = [...new URLSearchParams(url.slice(start)).keys()]
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated === undefined) return
  throw new ServiceError('INVALID_ARGUMENT', 'The request is not valid. See details.', {
    details: [{ in: 'query', path: '', code: 'REPEATED', message: 'A query parameter stands twice.' }],
  })
}

/** Tells a path that nobody serves from one that only knows other methods. */
function createRouteErrors(routes: ReadonlyArray<{ method: string; path: string }>) {
  const patterns = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  for (const { method, path } of routes) {
    const pattern = new RegExp(`^${path.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')}/?$`)
    const entry = patterns.get(path) ?? { pattern, methods: new Set() }
    entry.methods.add(method)
    if (method === 'GET') entry.methods.add('HEAD')
    patterns.set(path, entry)
  }
  return (method: string, path: string): ServiceError => {
    const methods = new Set<string>()
    for (const entry of patterns.values()) {
      if (entry.pattern.test(path)) for (const known of entry.methods) methods.add(known)
    }
    if (methods.size === 0 || methods.has(method)) {
      return new ServiceError('NOT_FOUND', 'There is no such route.', { reason: 'ROUTE_NOT_FOUND' })
    }
    return new ServiceError('METHOD_NOT_ALLOWED', 'This route does not know the method.', {
      metadata: { allowed: [...methods].toSorted().join(', ') },
    })
  }
}
