import { ServiceError } from '../domain/model/errors.ts'

/** The paths that a route serves. */
export const routePattern = (path: string) =>
  new RegExp(`^${path.replace(/\/$/, '').replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')}/?$`)

/** Tells a path that nobody serves from one that only knows other methods. */
export function createRouteErrors(routes: ReadonlyArray<{ method: string; path: string }>) {
  const patterns = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  for (const { method, path } of routes) {
    const entry = patterns.get(path) ?? { pattern: routePattern(path), methods: new Set() }
    entry.methods.add(method)
    if (method === 'GET') entry.methods.add('HEAD')
    patterns.set(path, entry)
  }
  return (method: string, path: string): ServiceError => {
    // A path that is spelled out is no instance of a pattern: `send` is not an id.
    const matching = [...patterns].filter(([, { pattern }]) => pattern.test(path))
    const exact = matching.filter(([route]) => !route.includes(':'))
    const entries = exact.length > 0 ? exact : matching
    const methods = new Set(entries.flatMap(([, entry]) => [...entry.methods]))
    if (methods.size === 0 || methods.has(method)) {
      return new ServiceError('NOT_FOUND', 'There is no such route. Check the path.', {
        reason: 'ROUTE_NOT_FOUND',
      })
    }
    const allowed = [...methods].toSorted().join(', ')
    return new ServiceError('METHOD_NOT_ALLOWED', `Method not allowed for this route. Use ${allowed}.`, {
      metadata: { allowed },
    })
  }
}
