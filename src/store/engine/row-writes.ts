import { Column, getTableColumns, getTableName, type InferSelectModel } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'

/** A value as a column stores it. */
type Value = string | number | null

/** Fields of a table in memory. */
type Stored<Table extends SQLiteTable> = InferSelectModel<Table>

/** Reads fields of a table from a `T`. Those that `T` has itself, with the same type, need no reader. */
type Readers<Table extends SQLiteTable, T> = {
  [Field in keyof Stored<Table>]?: (row: T) => Stored<Table>[Field]
} & {
  [Field in keyof Stored<Table> as T extends Pick<Stored<Table>, Field> ? never : Field]: (
    row: T,
  ) => Stored<Table>[Field]
}

/** Columns of a table by their fields, and what each stores for a `T`. */
type Columns<T, Field extends string> = {
  table: string
  byField: Readonly<Record<Field, { name: string; read: (row: T) => Value }>>
}

/** Lists all columns of a table. The values of `T` are encoded as the table defines it. */
export function columnsOf<Table extends SQLiteTable, T>(
  table: Table,
  readers: Readers<Table, T>,
): Columns<T, keyof Stored<Table> & string> {
  // Readers of other names are excluded by their type.
  const own = readers as Readonly<Record<string, ((row: T) => unknown) | undefined>>
  const columns = Object.entries(getTableColumns(table)).map(([field, column]) => {
    const readField = own[field] ?? ((row: T) => (row as Record<string, unknown>)[field])
    const isPlain = column.mapToDriverValue === Column.prototype.mapToDriverValue
    const encode = (value: unknown) => (value === null ? null : column.mapToDriverValue(value))
    return [field, { name: column.name, read: isPlain ? readField : (row: T) => encode(readField(row)) }]
  })
  return { table: getTableName(table), byField: Object.fromEntries(columns) }
}

/** A write of rows of one table. */
export type RowWrite<T> = {
  /** Columns that are written, or that find the row. */
  columns: readonly string[]
  /** Returns the values of the columns. */
  toValues(row: T): Value[]
  /** Writes one row: has a `?` for each value. Undefined for a write of PostgreSQL alone. */
  sqlite: string | undefined
  /** Writes any number of rows, `given`, from a JSON array of objects. */
  postgres: string
  /** On PostgreSQL: converts an error of the database. */
  toError?: ((error: unknown) => unknown) | undefined
}

/** Expressions of PostgreSQL for the values of fields; `given.NAME` is the value of a row. */
type Computed<Field extends string> = Readonly<Partial<Record<Field, string>>>

/** Writes an insert of rows. */
export function insertInto<T, Field extends string>(
  columns: Columns<T, Field>,
  options: {
    /** Changes the other columns of a row whose key exists. Without it, that is an error. */
    onConflict?: { key: ReadonlyArray<NoInfer<Field>>; others: 'add' | 'replace' | 'keep' }
    computed?: Computed<NoInfer<Field>>
    /** Condition of PostgreSQL on each row. */
    onlyIf?: string
    toError?: RowWrite<T>['toError']
  } = {},
): RowWrite<T> {
  const { onConflict, computed, onlyIf = 'true', toError } = options
  const { table } = columns
  const fields = fieldsOf(columns)
  const write = readFields(columns, fields)
  const list = write.columns.join(', ')
  const values = fields.map((field) => computeField(columns, field, computed)).join(', ')
  const clause = onConflict ? conflictClause(columns, onConflict) : ''
  return {
    ...write,
    sqlite: `insert into ${table} (${list}) values (${fields.map(() => '?').join(', ')}) ${clause}`,
    postgres: `insert into ${table} (${list}) select ${values} from ${rowsOf(table)} where ${onlyIf} ${clause}`,
    toError,
  }
}

function conflictClause<T, Field extends string>(
  { table, byField }: Columns<T, Field>,
  { key, others }: { key: readonly Field[]; others: 'add' | 'replace' | 'keep' },
): string {
  const keyNames = key.map((field) => byField[field].name)
  const names = fieldsOf({ byField }).map((field) => byField[field].name)
  const values = names
    .filter((name) => !keyNames.includes(name))
    .map((name) => `${name} = ${others === 'add' ? `${table}.${name} + ` : ''}excluded.${name}`)
  const action = others === 'keep' ? 'nothing' : `update set ${values.join(', ')}`
  return `on conflict (${keyNames.join(', ')}) do ${action}`
}

/** Writes an update of rows. @param set fields that change @param key fields that find the row */
export function updateTable<T, Field extends string>(
  columns: Columns<T, Field>,
  { set, key, computed }: { set: readonly Field[]; key: readonly Field[]; computed?: Computed<Field> },
): RowWrite<T> {
  const { table, byField } = columns
  const setNames = set.map((field) => byField[field].name)
  const keyNames = key.map((field) => byField[field].name)
  const values = set.map((field) => `${byField[field].name} = ${computeField(columns, field, computed)}`)
  const isSame = keyNames.map((name) => `${table}.${name} = given.${name}`)
  const toPlaceholder = (name: string) => `${name} = ?`
  return {
    ...readFields(columns, [...set, ...key]),
    sqlite: `update ${table} set ${setNames.map(toPlaceholder).join(', ')} where ${keyNames.map(toPlaceholder).join(' and ')}`,
    postgres: `update ${table} set ${values.join(', ')} from ${rowsOf(table)} where ${isSame.join(' and ')}`,
  }
}

/** Lists the fields of columns, in the order of the table. */
export const fieldsOf = <Field extends string>({ byField }: Pick<Columns<never, Field>, 'byField'>) =>
  // The record has no others.
  Object.keys(byField) as Field[]

const computeField = <T, Field extends string>(
  { byField }: Columns<T, Field>,
  field: Field,
  computed: Computed<Field> | undefined,
) => computed?.[field] ?? `given.${byField[field].name}`

/** Returns the first two fields of a write of columns. */
export function readFields<T, Field extends string>(
  { byField }: Columns<T, Field>,
  fields: readonly Field[],
): Pick<RowWrite<T>, 'columns' | 'toValues'> {
  const columns = fields.map((field) => byField[field])
  return {
    columns: columns.map(({ name }) => name),
    toValues: (row) => columns.map(({ read }) => read(row)),
  }
}

/** The rows of a statement on PostgreSQL. JSON costs half of what an array for each column does. */
export const rowsOf = (table: string) => `json_populate_recordset(null::${table}, $1::json) as given`

/** Reads the fields of a table that are counts: all but those of its key. A count that is missing adds nothing. */
export const countReaders = <Table extends SQLiteTable, Key extends keyof Stored<Table>>(
  table: Table,
  key: readonly Key[],
) =>
  // The table has these fields, and those of the key.
  Object.fromEntries(
    Object.keys(getTableColumns(table))
      .filter((name) => !key.includes(name as Key))
      .map((name) => [name, ({ counts }: CountsOf<string>) => counts[name] ?? 0]),
  ) as Record<Exclude<keyof Stored<Table>, Key>, (row: CountsOf<Exclude<keyof Stored<Table>, Key>>) => number>

type CountsOf<Name extends PropertyKey> = { counts: Readonly<Partial<Record<Name, number>>> }

/** Writes the rows of a statement on PostgreSQL. Its JSON takes no half of a surrogate pair, which UTF-8 has none of. */
export const toJsonRows = <T>({ columns, toValues }: RowWrite<T>, rows: readonly T[]): string =>
  JSON.stringify(
    rows.map((row) => {
      const values = toValues(row)
      const object: Record<string, Value> = {}
      for (const [index, name] of columns.entries()) {
        const value = values[index]
        if (value === undefined) throw new TypeError(`a row lacks a value for ${name}`)
        object[name] = typeof value === 'string' ? value.toWellFormed() : value
      }
      return object
    }),
  )
