import type { App } from '../../src/http/app.ts'
import type { JsonText } from '../../src/shared/json.ts'

/**
 * The server's own route types: a path, body or field that the server does not have fails to compile here. Types only,
 * so that the client loads no server code and keeps the raw body, which --json prints unchanged (a generated client
 * would keep only the parsed body).
 */
type Tree = App['~Routes']

type Segments<Path> = Path extends `/${infer First}/${infer Rest}`
  ? [First, ...Segments<`/${Rest}`>]
  : Path extends `/${infer Last}`
    ? [Last]
    : []

type Descend<Node, Names> = Names extends [infer Name, ...infer Rest]
  ? Name extends keyof Node
    ? Descend<Node[Name], Rest>
    : never
  : Node

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The route of a method and a path, like `'GET', '/v1/projects/:id'`; `never` if it does not exist. */
export type Route<M extends Method, Path extends string> =
  Descend<Tree, Segments<Path>> extends infer Node
    ? Lowercase<M> extends keyof Node
      ? Node[Lowercase<M>]
      : never
    : never

/** Type of a successful response, without the `data` envelope. */
type SuccessData<R> = R extends { response: infer Responses }
  ? Parsed<Responses[Extract<keyof Responses, 200 | 201>]> extends { data: infer Data }
    ? Data
    : never
  : never

type Parsed<Body> = Body extends JsonText<infer Value> ? Value : Body

type PathParam = `:${string}`

/** Path parameters by name. */
type PathParams<Path> = {
  [
    Name in Segments<Path>[number] as Name extends PathParam
      ? Name extends `:${infer Bare}`
        ? Bare
        : never
      : never
  ]: string
}

/** Response data of one route. */
export type ResponseData<M extends Method, Path extends string> = SuccessData<Route<M, Path>>

/** The path itself if the server has this route, otherwise `never`. */
export type ExistingPath<M extends Method, Path extends string> = Route<M, Path> extends never ? never : Path

/** The parameters of a query; one that is undefined or null is left out of the URL. */
type Omittable<Query> = { [Name in keyof Query]: Query[Name] | null | undefined }

/** Body, query and path parameters of one call. */
export type Call<M extends Method, Path extends string> = {
  body?: Route<M, Path> extends { body: infer Body } ? Body : never
  query?: Route<M, Path> extends { query: infer Query } ? Omittable<Query> : never
  params?: PathParams<Path>
  /** Headers besides credentials and content type. */
  headers?: Record<string, string>
}

/** Fills the parameters of a path and appends the query. */
export function buildPath(
  path: string,
  call: { query?: unknown; params?: Record<string, string> | undefined },
) {
  const filledPath = path.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(call.params?.[name] ?? ''),
  )
  const query = Object.entries(call.query ?? {}).filter(
    (pair): pair is [string, string] => typeof pair[1] === 'string',
  )
  return query.length === 0 ? filledPath : `${filledPath}?${new URLSearchParams(query).toString()}`
}
