import type { SQLQueryBindings, Statement } from 'bun:sqlite'
import {
  Column,
  getTableName,
  is,
  noopDecoder,
  noopEncoder,
  Param,
  Placeholder,
  SQL,
  sql,
  type DriverValueDecoder,
  type DriverValueEncoder,
} from 'drizzle-orm'
import type { Preparable, SqliteParts } from '../engine/database.ts'

/** A selected value of a drizzle query, and its path in the result row. */
type Field = { path: string[]; field: unknown }

type Row = Record<string, unknown>

type Decoder = DriverValueDecoder<unknown, unknown>

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
export const prepareOnSqlite: SqliteParts['prepare'] = <R>(build: () => Preparable<R>) => {
  let run: ((values: Row) => unknown) | undefined
  // R is the row type of the query that `build` returns.
  return (values: Row = {}) => (run ??= compile(build() as unknown as DrizzleQuery))(values) as R
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

/** Builds a function that decodes column values in place. Most columns need no decoding. */
function compileDecoders(fields: Field[]): (rows: Row[]) => Row[] {
  const decoders = fields.flatMap(({ path, field }) => {
    const decoder = customDecoder(field)
    return decoder ? [{ name: path.join(), decoder }] : []
  })
  return (rows) => {
    for (const { name, decoder } of decoders) {
      for (const row of rows) {
        if (row[name] !== null) row[name] = decoder.mapFromDriverValue(row[name])
      }
    }
    return rows
  }
}

/**
 * Builds a function that turns the values of a join into objects of objects; an object is null if an outer join found
 * no row.
 *
 * @param notNullByTable by table name; false if an outer join may find no row of the table
 */
function compileNesting(
  fields: Field[],
  notNullByTable: Record<string, boolean> = {},
): (rows: unknown[][]) => Row[] {
  if (fields.some(({ path }) => path.length !== 2))
    throw new TypeError('a row must consist of values, or of objects of values')
  const columnSlots = fields.map(({ path: [object = '', name = ''], field }, index) => ({
    object,
    name,
    index,
    decoder: customDecoder(field),
    isOptional: is(field, Column) && notNullByTable[getTableName(field.table)] === false,
  }))
  const objects = [...Map.groupBy(columnSlots, ({ object }) => object)].map(([name, members]) => ({
    name,
    members,
    isOptional: members.every(({ isOptional }) => isOptional),
  }))
  return (rows) => {
    const nested: Row[] = []
    for (const values of rows) {
      const row: Row = {}
      for (const { name, members, isOptional } of objects) row[name] = toObject(members, values, isOptional)
      nested.push(row)
    }
    return nested
  }
}

type Member = { name: string; index: number; decoder: Decoder | undefined }

function toObject(members: Member[], values: unknown[], isOptional: boolean): Row | null {
  const object: Row = {}
  let isNull = isOptional
  for (const { name, index, decoder } of members) {
    const value = values[index]
    object[name] = decoder && value !== null ? decoder.mapFromDriverValue(value) : value
    if (value !== null) isNull = false
  }
  return isNull ? null : object
}

/** Returns undefined if the value needs no decoding. */
function customDecoder(field: unknown): Decoder | undefined {
  const source = is(field, SQL.Aliased) ? field.sql : field
  // drizzle's types hide the decoder of an expression.
  const decoder = is(source, Column) ? source : (source as { decoder: Decoder }).decoder
  const isIdentity =
    decoder === noopDecoder || decoder.mapFromDriverValue === Column.prototype.mapFromDriverValue
  return isIdentity ? undefined : decoder
}
