/** A value as a column stores it. */
type Value = string | number | null

/** Columns of a table by their names, and what each has for a `T`. */
export type Columns<T, Name extends string = string> = Readonly<Record<Name, (row: T) => Value>>

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

/** Expressions of PostgreSQL for the values of columns; `given.NAME` is the value of a row. */
type Computed = Readonly<Record<string, string>>

/** Writes an insert of rows. */
export function insertInto<T>(
  table: string,
  columns: Columns<T>,
  options: {
    /** Clause for a row whose key exists; without it, that is an error. */
    onConflict?: string
    computed?: Computed
    /** Condition of PostgreSQL on each row. */
    onlyIf?: string
    toError?: RowWrite<T>['toError']
  } = {},
): RowWrite<T> {
  const { onConflict = '', computed = {}, onlyIf = 'true', toError } = options
  const names = Object.keys(columns)
  const list = names.join(', ')
  const values = names.map((name) => computed[name] ?? `given.${name}`).join(', ')
  return {
    ...readColumns(columns),
    sqlite: `insert into ${table} (${list}) values (${names.map(() => '?').join(', ')}) ${onConflict}`,
    postgres: `insert into ${table} (${list}) select ${values} from ${rowsOf(table)} where ${onlyIf} ${onConflict}`,
    toError,
  }
}

/** Writes an update of rows. @param set columns that change @param key columns that find the row */
export function updateTable<T, Name extends string>(
  table: string,
  columns: Columns<T, Name>,
  { set, key, computed = {} }: { set: readonly Name[]; key: readonly Name[]; computed?: Computed },
): RowWrite<T> {
  const values = set.map((name) => `${name} = ${computed[name] ?? `given.${name}`}`).join(', ')
  const isSame = key.map((name) => `${table}.${name} = given.${name}`).join(' and ')
  return {
    ...readColumns(Object.fromEntries([...set, ...key].map((name) => [name, columns[name]]))),
    sqlite: `update ${table} set ${set.map((name) => `${name} = ?`).join(', ')} where ${key.map((name) => `${name} = ?`).join(' and ')}`,
    postgres: `update ${table} set ${values} from ${rowsOf(table)} where ${isSame}`,
  }
}

/** Returns the first two fields of a write of columns. */
export function readColumns<T>(columns: Columns<T>): Pick<RowWrite<T>, 'columns' | 'toValues'> {
  const readers = Object.values(columns)
  return { columns: Object.keys(columns), toValues: (row: T) => readers.map((read) => read(row)) }
}

/** The rows of a statement on PostgreSQL. JSON costs half of what an array for each column does. */
export const rowsOf = (table: string) => `json_populate_recordset(null::${table}, $1::json) as given`

/** Tells an upsert to add the counts of a row to those that are there. */
export const addOnConflict = (table: string, key: readonly string[], counts: readonly string[]) =>
  `on conflict (${key.join(', ')}) do update set ${counts.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ')}`

/** Lists columns of counts, where a count that is missing adds nothing. @param columns in the order of `names` */
export const countColumns = <Name extends string>(
  names: readonly Name[],
  columns: readonly string[],
): Columns<{ counts: Readonly<Partial<Record<Name, number>>> }> =>
  Object.fromEntries(names.map((name, index) => [columns[index] ?? name, ({ counts }) => counts[name] ?? 0]))

/** Tells an upsert to replace the other columns of the row that is there. */
export const replaceOnConflict = (key: readonly string[], columns: Columns<never>) =>
  `on conflict (${key.join(', ')}) do update set ${Object.keys(columns)
    .filter((name) => !key.includes(name))
    .map((name) => `${name} = excluded.${name}`)
    .join(', ')}`

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
