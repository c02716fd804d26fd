import type { Database as SqliteConnection } from 'bun:sqlite'

/** Lists the columns of a table's primary key on SQLite, in their order. */
export function primaryKey(connection: SqliteConnection, table: string): string[] {
  const rows = connection
    .query<{ name: string }, [string]>('select name from pragma_table_info(?) where pk > 0 order by pk')
    .all(table)
  return rows.map(({ name }) => name)
}
