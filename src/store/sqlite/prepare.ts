import type { SQLQueryBindings, Statement } from 'bun:sqlite'
import { Column, is, noopEncoder, Param, Placeholder, SQL, sql, type DriverValueEncoder } from 'drizzle-orm'
import type { Preparable, PreparedQuery } from '../engine/database.ts'
import { compileDecoders, compileNesting, type Field, type Row } from './query-rows.ts'

/** Internals of drizzle's query builders that their types hide: the selected fields, or those a write returns. */
type DrizzleQuery = Preparable<unknown> & {
  config: { fields?: Record<string, unknown>; returning?: Field[] }
}

/** Internals of drizzle's prepared query on bun:sqlite that its types hide. */
type DrizzlePrepared = {
  stmt: Statement<Row, SQLQueryBindings[]>
  query: { params: unknown[] }
  /** Undefined if the statement returns nothing. */
  fields: Field[] | undefined
  /** For joins: by table name. */
  joinsNotNullableMap?: Record<string, boolean>
}

/**
 * Prepares a drizzle query and runs it on bun:sqlite directly, because drizzle's mapping takes as long as SQLite
 * itself. Columns are aliased to their field names, so bun:sqlite returns the final objects. Nesting and decoding are
 * worked out once per query.
 */
export function prepareOnSqlite<R>(build: () => Preparable<R>): PreparedQuery<R> {
  let run: ((values: Row) => unknown) | undefined
  // R is the row type of the query that `build` returns.
  return (values = {}) => (run ??= compile(build() as unknown as DrizzleQuery))(values) as R
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

/** Returns `column as "name"`. A table, or fields of one, stay unchanged. */
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
  // A plain loop is fastest, and a request runs a dozen statements or more.
  return (values) => {
    const bindings: SQLQueryBindings[] = []
    for (const { name, value: constant, encoder } of slots) {
      if (name === undefined) {
        bindings.push(constant)
        continue
      }
      const value = values[name]
      if (value === undefined) throw new TypeError(`a prepared query lacks a value for ${name}`)
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
  throw new TypeError('a column must hold text, a number or null')
}
