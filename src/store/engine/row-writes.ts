/** A value as a column stores it. */
export type Value = string | number | null

/** A write of rows of one table. A row is the list of its values. */
export type RowWrite = {
  /** Columns of the values. */
  columns: readonly string[]
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
export function insertInto(
  table: string,
  columns: readonly string[],
  options: {
    /** Clause for a row whose key exists; without it, that is an error. */
    onConflict?: string
    computed?: Computed
    /** Condition of PostgreSQL on each row. */
    onlyIf?: string
    toError?: RowWrite['toError']
  } = {},
): RowWrite {
  const { onConflict = '', computed = {}, onlyIf = 'true', toError } = options
  const names = columns.join(', ')
  const values = columns.map((name) => computed[name] ?? `given.${name}`).join(', ')
  return {
    columns,
    sqlite: `insert into ${table} (${names}) values (${columns.map(() => '?').join(', ')}) ${onConflict}`,
    postgres: `insert into ${table} (${names}) select ${values} from ${rowsOf(table)} where ${onlyIf} ${onConflict}`,
    toError,
  }
}

/** Writes an update of rows by their key. The values are those of `set`, then those of `key`. */
export function updateTable(
  table: string,
  set: readonly string[],
  key: readonly string[],
  computed: Computed = {},
): RowWrite {
  const values = set.map((name) => `${name} = ${computed[name] ?? `given.${name}`}`).join(', ')
  const isSame = key.map((name) => `${table}.${name} = given.${name}`).join(' and ')
  return {
    columns: [...set, ...key],
    sqlite: `update ${table} set ${set.map((name) => `${name} = ?`).join(', ')} where ${key.map((name) => `${name} = ?`).join(' and ')}`,
    postgres: `update ${table} set ${values} from ${rowsOf(table)} where ${isSame}`,
  }
}

/** The rows of a statement on PostgreSQL. JSON costs half of what an array for each column does. */
export const rowsOf = (table: string) => `json_populate_recordset(null::${table}, $1::json) as given`

/** Tells an upsert to add the counts of a row to those that are there. */
export const addOnConflict = (table: string, key: readonly string[], counts: readonly string[]) =>
  `on conflict (${key.join(', ')}) do update set ${counts.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ')}`

/** Tells an upsert to replace the other columns of the row that is there. */
export const replaceOnConflict = (key: readonly string[], columns: readonly string[]) =>
  `on conflict (${key.join(', ')}) do update set ${columns
    .filter((name) => !key.includes(name))
    .map((name) => `${name} = excluded.${name}`)
    .join(', ')}`

/** Writes the rows of a statement on PostgreSQL. Its JSON takes no half of a surrogate pair, which UTF-8 has none of. */
export const toJsonRows = (columns: readonly string[], rows: ReadonlyArray<readonly Value[]>): string =>
  JSON.stringify(
    rows.map((row) => {
      const object: Record<string, Value> = {}
      for (const [index, name] of columns.entries()) {
        const value = row[index]
        if (value === undefined) throw new TypeError(`a row lacks a value for ${name}`)
        object[name] = typeof value === 'string' ? value.toWellFormed() : value
      }
      return object
    }),
  )
