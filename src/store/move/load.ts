import type { Client } from 'pg'
import { copyLine, createTableSum, parseTableSum, rowText, tableSumSql, type TableSum } from './checksum.ts'
import { copyIn } from './copy-in.ts'
import type { MovedTable } from './moved-tables.ts'

/** Tables of PostgreSQL that belong to its nodes or its schema, and are not replaced. */
const keptTables = ['migrations']

/** Reports the rows that were sent so far of a table. */
export type ReportRows = (rows: number) => void

/**
 * Empties all tables but the ones of the schema, and locks them until the transaction ends.
 *
 * @param kept more tables to keep
 */
export async function emptyTables(client: Client, kept: readonly string[] = []): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname <> all ($1) order by 1`,
    [[...keptTables, ...kept]],
  )
  await client.query(`truncate ${rows.map(({ name }) => name).join()}`)
}

/**
 * Drops the indexes and foreign keys of the schema, because one pass over all rows builds them faster.
 *
 * @returns statements that create them again: indexes first
 */
export async function dropIndexes(client: Client): Promise<string[]> {
  const { rows: keys } = await client.query<{ table: string; name: string; definition: string }>(
    `select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as definition
     from pg_constraint
     where contype = 'f' and conparentid = 0 and connamespace = current_schema()::regnamespace`,
  )
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
     from pg_index i join pg_class c on c.oid = i.indrelid
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and not exists (select 1 from pg_constraint where conindid = i.indexrelid)
       and c.relname <> all ($1)`,
    [keptTables],
  )
  // Foreign keys need indexes, and so go first and come last.
  for (const { table, name } of keys) await client.query(`alter table ${table} drop constraint ${name}`)
  for (const { name } of indexes) await client.query(`drop index ${name}`)
  return [
    // Without ONLY, the index of a partitioned table is built on its partitions, too.
    ...indexes.map(({ definition }) => definition.replace(' ON ONLY ', ' ON ')),
    ...keys.map(({ table, name, definition }) => `alter table ${table} add constraint ${name} ${definition}`),
  ]
}

/** Loads the rows of a table. @returns what was sent */
export async function loadTable(client: Client, table: MovedTable, report: ReportRows): Promise<TableSum> {
  const sum = createTableSum()
  function* lines() {
    for (const row of table.rows()) {
      const text = rowText(row)
      sum.add(text)
      yield copyLine(row, text)
      if (sum.rows() % 1_000 === 0) report(sum.rows())
    }
  }
  await copyIn(client, `${table.name} (${table.columns.join()})`, lines())
  return sum.read()
}

/** Adds up the rows that PostgreSQL has. */
export async function readTableSum(client: Client, table: MovedTable): Promise<TableSum> {
  const { rows } = await client.query<{ rows: string; bits: string }>(tableSumSql(table))
  return parseTableSum(rows[0] ?? { rows: '0', bits: '' })
}
