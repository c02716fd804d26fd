import { invalidRequest } from '../domain/model/errors.ts'
import { isRepeatableName } from './caller-names.ts'

// Refuses URLs that a proxy in front, or another parser, could read in another way.

/** Methods that change nothing (RFC 9110 §9.2.1). */
export const isSafeMethod = (method: string) => method === 'GET' || method === 'HEAD'

/** More segments than any route has. */
const segmentsMax = 8

type Handler<R> = (request: R) => Response | Promise<Response>

/**
 * Registers a handler with Bun's router for every path of up to eight segments, with and without a trailing slash.
 * That router alone sees the path as it was sent: the URL of a request has its dot segments resolved and its
 * backslashes replaced, so that a proxy in front and this server could see different routes.
 */
export function rawPathRoutes<R extends Request>(handler: Handler<R>): Record<string, Handler<R>> {
  const routes: Record<string, Handler<R>> = { '/': handler }
  let path = ''
  for (let count = 1; count <= segmentsMax; count++) {
    path += `/:s${count}`
    routes[path] = handler
    routes[`${path}/`] = handler
  }
  return routes
}

/** Paths whose pages have relative links: the slash belongs to them. */
const slashPaths = /^\/(?:v1\/)?docs\/$/

/**
 * Decides on the path of a request before it is routed: a backslash, an empty segment or a dot segment, also
 * percent-encoded, is no route. One trailing slash is removed by a redirect if the method is safe.
 *
 * @param params the segments of the path as it was sent, decoded; undefined if Bun matched none of `rawPathRoutes`
 */
export function judgePath(
  method: string,
  path: string,
  params: Readonly<Record<string, string>> | undefined,
): 'route' | 'not_found' | 'redirect' {
  if (!params) return 'not_found'
  for (const name in params) if (isAmbiguousSegment(params[name] ?? '')) return 'not_found'
  if (path === '/' || !path.endsWith('/') || slashPaths.test(path)) return 'route'
  return isSafeMethod(method) ? 'redirect' : 'not_found'
}

const isAmbiguousSegment = (segment: string) => segment === '.' || segment === '..' || segment.includes('\\')

/**
 * Rejects a query string that two parsers may read differently: a repeated parameter (the framework takes the last), an
 * invalid escape (the framework keeps it verbatim), or NUL (not every database can search for it).
 *
 * @throws INVALID_ARGUMENT
 */
export function refuseAmbiguousQuery(url: string) {
  const start = url.indexOf('?')
  if (start === -1) return
  const names = new Set<string>()
  for (const pair of url.slice(start + 1).split('&')) {
    if (pair === '') continue
    const [name, value] = splitAt(pair, '=').map(decode)
    if (name === undefined || value === undefined)
      throw refusal(name, 'INVALID', 'Expected percent-encoded UTF-8 without NUL.')
    if (names.has(name)) throw refusal(name, 'REPEATED', 'The query parameter is repeated. Send it once.')
    names.add(name)
  }
}

function splitAt(text: string, separator: string): [string, string] {
  const index = text.indexOf(separator)
  return index === -1 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)]
}

function decode(text: string): string | undefined {
  if (!/[%+\0]/.test(text)) return text
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    return decoded.includes('\0') ? undefined : decoded
  } catch {
    return undefined
  }
}

function refusal(name: string | undefined, code: string, message: string) {
  const path = name !== undefined && isRepeatableName(name) ? name : ''
  return invalidRequest([{ in: 'query', path, code, message }])
}
