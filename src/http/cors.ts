/** The routes that take an application's secrets, or a provider's reports, belong to servers: no page may call them. */
const serverOnlyPaths = /^\/v1\/(otp\/(send|resend|verify|cancel)\/?$|callbacks\/)/

/** A browser asking whether it may make another call (Fetch standard, CORS-preflight request). */
export const isPreflight = (request: Request) =>
  request.method === 'OPTIONS' && request.headers.has('access-control-request-method')

/**
 * The headers that let a page of another origin call the console routes; none unless the operator names its origin.
 * Without credentials: the token comes in a header of the page's own making.
 */
export function corsHeaders(origins: readonly string[], request: Request): Record<string, string> {
  if (origins.length === 0) return {}
  const origin = request.headers.get('origin')
  if (origin === null) return {}
  const headers: Record<string, string> = { vary: 'Origin' }
  if (!origins.includes(origin) || serverOnlyPaths.test(new URL(request.url).pathname)) return headers
  headers['access-control-allow-origin'] = origin
  if (isPreflight(request)) {
    headers['access-control-allow-methods'] = 'GET, POST, PATCH, DELETE'
    headers['access-control-allow-headers'] = 'Authorization, Content-Type, Idempotency-Key, Last-Event-ID'
    headers['access-control-max-age'] = '600'
  } else {
    headers['access-control-expose-headers'] =
      'X-Request-Id, RateLimit, RateLimit-Policy, Retry-After, Idempotency-Replayed'
  }
  return headers
}
