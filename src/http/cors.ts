/** Routes that take an application's secrets or a provider's callbacks. Only servers call them, so no page may. */
const serverOnlyPaths = /^\/v1\/(otp\/(send|resend|verify|cancel)\/?$|callbacks\/)/

/** Whether a request is a CORS preflight (Fetch standard). */
export const isPreflight = (request: Request) =>
  request.method === 'OPTIONS' && request.headers.has('access-control-request-method')

/**
 * Returns the headers that let pages of a configured origin call the console routes; none for other origins. Cookies
 * are not allowed, because pages send the token in a header.
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
