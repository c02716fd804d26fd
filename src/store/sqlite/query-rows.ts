import { Column, getTableName, is, noopDecoder, SQL, type DriverValueDecoder } from 'drizzle-orm'

/** A selected value of a drizzle query, and its path in the result row. */
export type Field = { path: string[]; field: unknown }

export type Row = Record<string, unknown>

type Decoder = DriverValueDecoder<unknown, unknown>

/** Builds a function that decodes column values in place. Most columns need no decoding. */
export function compileDecoders(fields: Field[]): (rows: Row[]) => Row[] {
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
export function compileNesting(
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
