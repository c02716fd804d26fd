import type { SQLQueryBindings, Statement } from 'bun:sqlite'
import { Column, is, noopEncoder, Param, Placeholder, SQL, sql, type DriverValueEncoder } from 'drizzle-orm'
import type { Preparable, PreparedQuery } from './database.ts'
import { compileDecoders, compileNesting, type Field, type Row } from './sqlite-rows.ts'

/** What drizzle's queries are made of, which their types hide: what is selected, or returned by a write. */
type DrizzleQuery = Preparable<unknown> & {
  config: { fields?: Record<string, unknown>; returning?: Field[] }
}

/** What drizzle's prepared query is made of on bun:sqlite. Its types hide it. */
type DrizzlePrepared = {
  stmt: Statement<Row, SQLQueryBindings[]>
  query: { params: unknown[] }
  /** Undefined where nothing is returned. */
  fields: Field[] | undefined
  /** Of a join, by the names of tables. */
  joinsNotNullableMap?: Record<string, boolean>
}

/**
 * Runs drizzle's statement without drizzle, whose part takes as long as SQLite's: columns are selected under the names of
 * their fields, so that bun:sqlite makes the very objects that are asked for. Where each value belongs, and which of them
 * stand for another, is worked out once.
 */
export function prepareOnSqlite<R>(build: () => Preparable<R>): PreparedQuery<R> {
  let run: ((values: Row) => unknown) | undefined
  // R is what the query of `build` returns: rows with these fields.
  return async (values = {}) => (run ??= compile(build() as unknown as DrizzleQuery))(values) as R
}

function compile(query: DrizzleQuery): (values: Row) => unknown {
  aliasColumns(query)
  const {
    stmt,
    query: builtQuery,
    fields,
    joinsNotNullableMap,
  } = query.prepare() as unknown as DrizzlePrepared
  const bind = compileParams(builtQuery.params)
  if (!fields) return (values) => stmt.run(...bind(values))
  if (fields.some(({ path }) => path.length > 1)) {
    const nest = compileNesting(fields, joinsNotNullableMap)
    return (values) => nest(stmt.values(...bind(values)))
  }
  const decode = compileDecoders(fields)
  return (values) => decode(stmt.all(...bind(values)))
}

function aliasColumns({ config }: DrizzleQuery) {
  if (config.returning) {
    config.returning = config.returning.map(({ path, field }) => ({
      path,
      field: withAlias(path.join(), field),
    }))
  } else if (config.fields) {
    config.fields = Object.fromEntries(
      Object.entries(config.fields).map(([name, field]) => [name, withAlias(name, field)]),
    )
  }
}

/** `column as "name"`. A table, or fields of one, stay as they are. */
function withAlias(name: string, field: unknown): unknown {
  if (is(field, Column)) return sql`${field}`.mapWith(field).as(name)
  return is(field, SQL) ? field.as(name) : field
}

type Slot = {
  name: string | undefined
  value: SQLQueryBindings
  encoder: DriverValueEncoder<unknown, unknown> | undefined
}

function compileParams(params: unknown[]): (values: Row) => SQLQueryBindings[] {
  const slots = params.map((param): Slot => {
    const unwrapped: unknown = is(param, Param) ? param.value : param
    return is(unwrapped, Placeholder)
      ? {
          name: String(unwrapped.name),
          value: null,
          encoder: is(param, Param) ? customEncoder(param) : undefined,
        }
      : { name: undefined, value: toBinding(unwrapped), encoder: undefined }
  })
  // A plain loop: a call runs a dozen statements or more.
  return (values) => {
    const bindings: SQLQueryBindings[] = []
    for (const { name, value: constant, encoder } of slots) {
      if (name === undefined) {
        bindings.push(constant)
        continue
      }
      const value = values[name]
      if (value === undefined) throw new TypeError(`a prepared query lacks its ${name}`)
      bindings.push(toBinding(encoder && value !== null ? encoder.mapToDriverValue(value) : value))
    }
    return bindings
  }
}

function customEncoder({ encoder }: Param) {
  const isIdentity = encoder === noopEncoder || encoder.mapToDriverValue === Column.prototype.mapToDriverValue
  return isIdentity ? undefined : encoder
}

function toBinding(value: unknown): SQLQueryBindings {
  if (value === null || typeof value === 'string' || typeof value === 'number') return value
  throw new TypeError('a column holds text, a number or null')
}
