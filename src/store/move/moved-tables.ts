import type { Database as SqliteConnection } from 'bun:sqlite'
import { getTableColumns, getTableName } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { primaryKey } from '../sqlite/primary-key.ts'
import { sqliteColumns } from '../engine/tables/columns.ts'
import { createShortIds } from '../engine/tables/short-ids.ts'
import { defineTables } from '../engine/tables.ts'
import { createAdmissionLog } from '../sqlite/admission-log.ts'
import { systemWorld } from '../../world/system.ts'
import { storedPolicies } from '../../domain/model/rate-limit.ts'

/** A table to move, and its rows as PostgreSQL has them. */
export type MovedTable = {
  name: string
  /** Names of the columns, in the order of the values. */
  columns: readonly string[]
  /** Number of rows, counted before they are read. */
  count(): number
  rows(): Iterable<readonly Value[]>
}

export type Value = string | number | null

/** Leases and circuits of the process that used the file; nodes make their own. */
const leftOut = ['provider_circuits', 'leases']
/** Facts about the SQLite file. */
const ownMeta = ['phone_index_until', 'phone_key_deleted', 'moved_to', 'clean_stop']

/** Rows that are read at a time. */
const pageRows = 2_000

/**
 * Lists the tables to move, while no other process can write to them. Short ids are replaced by full ids, and the log of
 * admissions by rows. The lagging indexes are left out: PostgreSQL has ordinary ones.
 */
export function listMovedTables(connection: SqliteConnection): MovedTable[] {
  const ids = createShortIds((sql) => connection.prepare(sql), connection)
  const tables = Object.values(defineTables(sqliteColumns(ids)))
  const moved = tables.filter((table) => !leftOut.includes(getTableName(table)))
  return [...moved.map((table) => describeTable(connection, table)), describeAdmissions(connection, ids)]
}

function describeTable(connection: SqliteConnection, table: SQLiteTable): MovedTable {
  const name = getTableName(table)
  const columns = Object.values(getTableColumns(table))
  const names = columns.map((column) => column.name)
  const key = primaryKey(connection, name)
  const condition = name === 'meta' ? `name not in (${ownMeta.map((one) => `'${one}'`).join()})` : '1'
  const select = `select ${names.join()}, ${key.join()} from ${name} where ${condition}`
  const order = `order by ${key.join()} limit ${pageRows}`
  // Ids in another form, and lists of them.
  const converted = columns.flatMap((column, index) =>
    column.columnType === 'SQLiteCustomColumn'
      ? [{ index, convert: (value: unknown) => toText(column.mapFromDriverValue(value)) }]
      : [],
  )

  return {
    name,
    columns: names,
    count: () =>
      Number(connection.query(`select count(*) from ${name} where ${condition}`).values()[0]?.[0] ?? 0),
    *rows() {
      const first = connection.prepare(`${select} ${order}`)
      const next = connection.prepare(
        `${select} and (${key.join()}) > (${key.map(() => '?').join()}) ${order}`,
      )
      let page = first.values() as Value[][]
      while (page.length > 0) {
        const last = page.at(-1)?.slice(names.length) ?? []
        for (const row of page) {
          row.length = names.length
          for (const { index, convert } of converted) {
            const value = row[index]
            if (value !== null) row[index] = convert(value)
          }
          yield row
        }
        page = page.length < pageRows ? [] : (next.values(...last) as Value[][])
      }
      // An open statement would keep the file open.
      first.finalize()
      next.finalize()
    },
  }
}

const toText = (value: unknown): string => (Array.isArray(value) ? value.join(' ') : String(value))

/** The admissions of the last minute, which PostgreSQL keeps in rows. */
function describeAdmissions(
  connection: SqliteConnection,
  ids: { toId(number: number): string; toNumber(id: string): number },
): MovedTable {
  const log = createAdmissionLog(connection, ids.toNumber, systemWorld)
  const rows = () =>
    log
      .list()
      .map(({ subject, policy, at, seq }): Value[] => [
        ids.toId(subject),
        storedPolicies[policy] ?? '',
        at,
        seq,
      ])
  return {
    name: 'rate_admissions',
    columns: ['subject', 'policy', 'at', 'seq'],
    count: () => rows().length,
    rows,
  }
}
