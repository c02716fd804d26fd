import { routePattern } from './route-errors.ts'

/** What a log tells of one call: the pattern of the route and never the path, in which a phone number may stand. */
export type CompletedRequest = {
  method: string
  /** Null where nobody serves the path. */
  route: string | null
  status: number
  traceId: string
  durationMs: number
}

type Handle = (request: Request) => Response | Promise<Response>

/**
 * Tells of each call once it is answered.
 *
 * @param now milliseconds, from any beginning
 */
export function observeRequests(
  handle: Handle,
  routes: ReadonlyArray<{ path: string }>,
  now: () => number,
  onResponse: (completed: CompletedRequest) => void,
): Handle {
  // Most calls are for a path that is spelled out, and such a path is no instance of a pattern.
  const exact = new Map(
    routes.filter(({ path }) => !path.includes(':')).map(({ path }) => [trimTrailingSlash(path), path]),
  )
  const patterns = routes
    .filter(({ path }) => path.includes(':'))
    .map(({ path }) => ({ path, pattern: routePattern(path) }))
  const matchRoute = (path: string) =>
    exact.get(trimTrailingSlash(path)) ?? patterns.find(({ pattern }) => pattern.test(path))?.path ?? null
  return async (request) => {
    const startedAt = now()
    const response = await handle(request)
    const path = /^(?:[a-z]+:\/\/[^/]*)?([^?]*)/.exec(request.url)?.[1] ?? ''
    onResponse({
      method: request.method,
      route: matchRoute(path),
      status: response.status,
      traceId: response.headers.get('x-request-id') ?? '',
      durationMs: Math.round(10 * (now() - startedAt)) / 10,
    })
    return response
  }
}

/** A route serves its path with a slash at its end and without. */
const trimTrailingSlash = (path: string) => (path.endsWith('/') ? path.slice(0, -1) : path)
