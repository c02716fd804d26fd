import type { App } from '../../src/http/app.ts'

/**
 * The server's own types for its routes: a path, a body or a field that the server does not know does not compile
 * here. Types alone, so that the client needs no code of the server's and sees each body as it came (a client
 * library would keep only the parsed one, and --json prints it untouched).
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

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** What stands behind a method and a path, like `'GET', '/v1/projects/:id'`; never where there is no such route. */
export type Route<M extends Method, Path extends string> =
  Descend<Tree, Segments<Path>> extends infer Node
    ? Lowercase<M> extends keyof Node
      ? Node[Lowercase<M>]
      : never
    : never

/** The answer of a success, without the `data` around it. */
type SuccessData<R> = R extends { response: infer Responses }
  ? Responses[Extract<keyof Responses, 200 | 201>] extends { data: infer Data }
    ? Data
    : never
  : never

type PathParam = `:${string}`

/** The parameters in a path, by name. */
type PathParams<Path> = {
  [
    Name in Segments<Path>[number] as Name extends PathParam
      ? Name extends `:${infer Bare}`
        ? Bare
        : never
      : never
  ]: string
}

/** The answer of one route. */
export type ResponseData<M extends Method, Path extends string> = SuccessData<Route<M, Path>>

/** The path itself where the server has such a route, else never. */
export type ExistingPath<M extends Method, Path extends string> = Route<M, Path> extends never ? never : Path

/** What a call of the route may carry. */
export type Call<M extends Method, Path extends string> = {
  body?: Route<M, Path> extends { body: infer Body } ? Body : never
  query?: Route<M, Path> extends { query: infer Query } ? Query : never
  params?: PathParams<Path>
}

/** The path with its parameters and its query in place. */
export function buildPath(
  path: string,
  call: { query?: unknown; params?: Record<string, string> | undefined },
) {
  const filledPath = path.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(call.params?.[name] ?? ''),
  )
  const query = Object.entries(call.query ?? {}).filter(
    (pair): pair is [string, string] => pair[1] !== undefined,
  )
  return query.length === 0 ? filledPath : `${filledPath}?${new URLSearchParams(query).toString()}`
}
