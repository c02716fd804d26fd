import type { Database as SqliteConnection } from 'bun:sqlite'
import type { Client } from 'pg'
import { idTime } from '../../domain/model/ids.ts'
import type { PartitionedTable } from '../engine/database.ts'
import { listMonthlyTables, planEntries, planMonths, type PartitionPlan } from '../postgres/partitions.ts'
import { copyLine, createTableSum, rowText, type TableSum } from './checksum.ts'
import { copyIn } from './copy-in.ts'
import type { MovedTable } from './moved-tables.ts'

/** Empties all tables but `migrations`, and locks them until the transaction ends. */
export async function emptyTables(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname <> 'migrations' order by 1`,
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
       and c.relname <> 'migrations'`,
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

/** Makes the partitions for the rows of a SQLite file, and those ahead of `now`. */
export async function makePartitions(client: Client, source: SqliteConnection, now: number): Promise<void> {
  const make = (table: PartitionedTable, { suffix, lower, upper }: PartitionPlan) =>
    client.query('select otpd_make_partition($1, $2, $3, $4)', [table, suffix, lower, upper])
  const first = (sql: string) => source.query(sql).values()[0] ?? []
  for (const { table, key } of listMonthlyTables()) {
    const [oldest] = first(`select min(${key}) from ${table}`)
    const from = typeof oldest === 'string' ? idTime(oldest) : now
    for (const plan of planMonths(table, from, now)) await make(table, plan)
  }
  const [seq, at] = first('select seq, at from events order by seq limit 1')
  const [last] = first(`select value from counters where name = 'event_seq'`)
  const earlier = seq === undefined ? undefined : { seq: Number(seq), at: Number(at) }
  for (let from = earlier?.seq ?? Number(last) + 1; from <= Number(last) + 1;) {
    const plan = planEntries(from, Number(last), earlier, now)
    await make('events', plan)
    from = Number(plan.upper)
  }
}

/** Loads the rows of a table. @param report called with the rows that were sent so far @returns what was sent */
export async function loadTable(
  client: Client,
  table: MovedTable,
  report: (rows: number) => void,
): Promise<TableSum> {
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

/**
 * Gathers the statistics of tables and partitions that have rows. Those of an empty partition would make plans that read
 * all of it, and the next month fills it.
 */
export async function analyzeTables(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class
     where relnamespace = current_schema()::regnamespace and relkind = 'r' and pg_relation_size(oid) > 0`,
  )
  await client.query(`analyze ${rows.map(({ name }) => name).join()}`)
}
