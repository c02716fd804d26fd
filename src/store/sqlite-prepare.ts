import type { SQLQueryBindings, Statement } from 'bun:sqlite'
import { is, Param, Placeholder } from 'drizzle-orm'
import type { Preparable, PreparedQuery } from './database.ts'

/** What drizzle's prepared query is made of on bun:sqlite. Its types hide it. */
type Prepared = {
  stmt: Statement<unknown, SQLQueryBindings[]>
  query: { params: unknown[] }
  /** Undefined where nothing is returned. */
  fields: Array<{ path: string[] }> | undefined
  all(values: Values): unknown
}

type Values = Record<string, unknown>

/**
 * Runs drizzle's statement without drizzle, whose part takes as long as SQLite's. Where each value belongs is worked out
 * once; none is converted, since every kind of column has the same value in SQLite and in JavaScript.
 */
export function prepareOnSqlite<R>(build: () => Preparable<R>): PreparedQuery<R> {
  let run: ((values: Values) => unknown) | undefined
  // R is what the query of `build` returns: rows with these fields.
  return async (values = {}) => (run ??= compile(build().prepare() as unknown as Prepared))(values) as R
}

function compile(prepared: Prepared): (values: Values) => unknown {
  const { stmt, query, fields } = prepared
  const bind = compileParams(query.params)
  if (!fields) return (values) => stmt.run(...bind(values))
  // Objects within rows are what joins give; drizzle builds those.
  if (fields.some(({ path }) => path.length > 1)) return (values) => prepared.all(values)
  const names = fields.map(({ path }) => path.join())
  return (values) => toObjects(names, stmt.values(...bind(values)))
}

function compileParams(params: unknown[]): (values: Values) => SQLQueryBindings[] {
  const slots = params.map((param) => {
    const inner: unknown = is(param, Param) ? param.value : param
    return is(inner, Placeholder) ? { name: String(inner.name) } : { value: toBinding(inner) }
  })
  // Plain loops, here and below: a call runs a dozen statements or more.
  return (values) => {
    const bindings: SQLQueryBindings[] = []
    for (const slot of slots) {
      if (slot.name === undefined) {
        bindings.push(slot.value)
        continue
      }
      const value = values[slot.name]
      if (value === undefined) throw new TypeError(`a prepared query lacks its ${slot.name}`)
      bindings.push(toBinding(value))
    }
    return bindings
  }
}

function toBinding(value: unknown): SQLQueryBindings {
  if (value === null || typeof value === 'string' || typeof value === 'number') return value
  throw new TypeError('a column holds text, a number or null')
}

function toObjects(names: readonly string[], rows: unknown[][]): Array<Record<string, unknown>> {
  const objects: Array<Record<string, unknown>> = []
  for (const row of rows) {
    const object: Record<string, unknown> = {}
    for (let i = 0; i < names.length; i++) object[names[i] ?? ''] = row[i]
    objects.push(object)
  }
  return objects
}
