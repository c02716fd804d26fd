import { ServiceError } from '../domain/model/errors.ts'

/** Tells whether a route has parameters or a wildcard. */
export const isPattern = (path: string) => /[:*]/.test(path)

/**
 * Compiles the path of a route to a regular expression, with an optional trailing slash.
 *
 * @param parameterPattern what a parameter matches, by its name; any text by default
 */
export function routePattern(path: string, parameterPattern = (_name: string) => '[^/]+'): RegExp {
  const text = path.replace(/\/$/, '').replaceAll('.', '\\.').replaceAll('*', '.*')
  return new RegExp(`^${text.replace(/:(\w+)/g, (_, name: string) => parameterPattern(name))}/?$`)
}

/** Ids have an underscore and phone numbers a digit, so that a misspelt `/v1/otp/sned` is no id. */
const identifierPattern = (name: string) =>
  /^(id|deliveryId|phoneNumber)$/.test(name) ? '[^/]*[_\\d%][^/]*' : '[^/]+'

/** NOT_FOUND (ROUTE_NOT_FOUND). */
export const routeNotFound = () =>
  new ServiceError('NOT_FOUND', 'There is no such route. Check the path.', { reason: 'ROUTE_NOT_FOUND' })

/**
 * Lists the calls of literal paths that a pattern would take: `GET /v1/otp/send` would be the request with the id `send`.
 * As no id is like that, they have no route.
 */
export function listShadowed(routes: ReadonlyArray<{ method: string; path: string }>) {
  const own = new Set(routes.map(({ method, path }) => `${method} ${path}`))
  const literals = new Set(routes.map(({ path }) => path).filter((path) => !isPattern(path)))
  return routes
    .filter(({ path }) => isPattern(path) && !path.includes('*'))
    .flatMap(({ method, path: pattern }) => {
      const expression = routePattern(pattern)
      return [...literals].filter((path) => expression.test(path)).map((path) => ({ method, path }))
    })
    .filter(({ method, path }) => !own.has(`${method} ${path}`))
}

/** Creates the error for an unmatched request: METHOD_NOT_ALLOWED if its path has other methods, else NOT_FOUND. */
export function createRouteErrors(routes: ReadonlyArray<{ method: string; path: string }>) {
  const patterns = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  for (const { method, path } of routes) {
    const entry = patterns.get(path) ?? { pattern: routePattern(path, identifierPattern), methods: new Set() }
    entry.methods.add(method)
    if (method === 'GET') entry.methods.add('HEAD')
    patterns.set(path, entry)
  }
  return (method: string, path: string): ServiceError => {
    // Literal paths take precedence over patterns: `send` is not an id.
    const matching = [...patterns].filter(([, { pattern }]) => pattern.test(path))
    const exact = matching.filter(([route]) => !isPattern(route))
    const entries = exact.length > 0 ? exact : matching
    const methods = new Set(entries.flatMap(([, entry]) => [...entry.methods]))
    if (methods.size === 0 || methods.has(method)) return routeNotFound()
    const allowed = [...methods].toSorted().join(', ')
    return new ServiceError('METHOD_NOT_ALLOWED', `Method not allowed for this route. Use ${allowed}.`, {
      metadata: { allowed },
    })
  }
}
