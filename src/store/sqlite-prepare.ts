import type { SQLQueryBindings, Statement } from 'bun:sqlite'
import { Column, is, Param, Placeholder, SQL, sql } from 'drizzle-orm'
import type { Preparable, PreparedQuery } from './database.ts'

/** What drizzle's queries are made of, which their types hide: what is selected, or returned by a write. */
type Query = Preparable<unknown> & {
  config: { fields?: Record<string, unknown>; returning?: Field[] }
}

/** What drizzle's prepared query is made of on bun:sqlite. Its types hide it. */
type Prepared = {
  stmt: Statement<unknown, SQLQueryBindings[]>
  query: { params: unknown[] }
  /** Undefined where nothing is returned. */
  fields: Field[] | undefined
  all(values: Values): unknown
}

type Field = { path: string[]; field: unknown }

type Values = Record<string, unknown>

/**
 * Runs drizzle's statement without drizzle, whose part takes as long as SQLite's: columns are selected under the names of
 * their fields, so that bun:sqlite makes the very objects that are asked for. Where each value belongs is worked out
 * once; none is converted, since every kind of column has the same value in SQLite and in JavaScript.
 */
export function prepareOnSqlite<R>(build: () => Preparable<R>): PreparedQuery<R> {
  let run: ((values: Values) => unknown) | undefined
  // R is what the query of `build` returns: rows with these fields.
  return async (values = {}) => (run ??= compile(build() as unknown as Query))(values) as R
}

function compile(query: Query): (values: Values) => unknown {
  nameColumns(query)
  const prepared = query.prepare() as unknown as Prepared
  const { stmt, fields } = prepared
  const bind = compileParams(prepared.query.params)
  if (!fields) return (values) => stmt.run(...bind(values))
  // Objects within rows are what joins give; drizzle builds those.
  if (fields.some(({ path }) => path.length > 1)) return (values) => prepared.all(values)
  return (values) => stmt.all(...bind(values))
}

function nameColumns({ config }: Query) {
  if (config.returning) {
    config.returning = config.returning.map(({ path, field }) => ({ path, field: named(path.join(), field) }))
  } else if (config.fields) {
    config.fields = Object.fromEntries(
      Object.entries(config.fields).map(([name, field]) => [name, named(name, field)]),
    )
  }
}

/** `column as "name"`. A table, or fields of one, stay as they are. */
function named(name: string, field: unknown): unknown {
  if (is(field, Column)) return sql`${field}`.mapWith(field).as(name)
  return is(field, SQL) ? field.as(name) : field
}

function compileParams(params: unknown[]): (values: Values) => SQLQueryBindings[] {
  const slots = params.map((param) => {
    const inner: unknown = is(param, Param) ? param.value : param
    return is(inner, Placeholder) ? { name: String(inner.name) } : { value: toBinding(inner) }
  })
  // A plain loop: a call runs a dozen statements or more.
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
