import { isSafeMethod } from './urls.ts'
import { isPattern, routePattern } from './route-errors.ts'
import { readTrace } from './client.ts'

/** Log record of one request. It has the route pattern and never the path, which may contain a phone number. */
export type CompletedRequest = {
  method: string
  /** Without a trailing slash. Null if no route matches the path. */
  route: string | null
  status: number
  /** `X-Request-Id` of the response. */
  xRequestId: string
  /** The caller's trace id, or else `xRequestId`. */
  traceId: string
  durationMs: number
  /**
   * The request may have taken effect, but its client never gets the response: it disconnected, or sent another request on
   * the connection, which Bun then closes.
   */
  isUnanswered?: true
}

type Handle<R extends Request> = (request: R) => Response | Promise<Response>

/**
 * Wraps a handler and reports each request when its response is ready.
 *
 * @param now milliseconds of a monotonic clock
 */
export function observeRequests<R extends Request>(
  handle: Handle<R>,
  routes: ReadonlyArray<{ path: string }>,
  now: () => number,
  onResponse: (completed: CompletedRequest) => void,
): Handle<R> {
  // Most requests are for a literal path, which takes precedence over patterns.
  const exact = new Set(
    routes.filter(({ path }) => !isPattern(path)).map(({ path }) => trimTrailingSlash(path)),
  )
  const patterns = routes
    .filter(({ path }) => isPattern(path))
    .map(({ path }) => ({ path: trimTrailingSlash(path), pattern: routePattern(path) }))
  const matchRoute = (path: string) => {
    const trimmed = trimTrailingSlash(path)
    return exact.has(trimmed) ? trimmed : (patterns.find(({ pattern }) => pattern.test(path))?.path ?? null)
  }
  return async (request) => {
    const startedAt = now()
    const response = await handle(request)
    const path = /^(?:[a-z]+:\/\/[^/]*)?([^?]*)/.exec(request.url)?.[1] ?? ''
    const xRequestId = response.headers.get('x-request-id') ?? ''
    onResponse({
      method: request.method,
      route: matchRoute(path),
      status: response.status,
      xRequestId,
      traceId: readTrace(request)?.traceId ?? xRequestId,
      durationMs: Math.round(10 * (now() - startedAt)) / 10,
      ...(!isSafeMethod(request.method) && request.signal.aborted && { isUnanswered: true }),
    })
    return response
  }
}

/** Routes match with and without a trailing slash. */
const trimTrailingSlash = (path: string) => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)
