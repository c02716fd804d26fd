import type { Database as SqliteConnection } from 'bun:sqlite'
import {
  deliveryListSql,
  inboxList,
  logLists,
  numberSql,
  requestsLists,
  statusLists,
  typeLists,
  userLists,
} from './list-numbers.ts'

/** Rows that are sorted at a time: about 40 MB of memory. */
const sliceRows = 200_000

/** Rows without an application are live. */
const environmentSql = `ifnull((select environment from temp.known_applications where number = app_id), 'live')`

/** A table and the rows that it adds: a query of `slice`, some of its rows, in the order of the lists. */
type Source = { table: string; key: 'id' | 'seq' | 'key'; rows: string }

const sources: readonly Source[] = [
  {
    table: 'otp_requests',
    key: 'id',
    rows: `select developer_id, ${numberSql('environment', requestsLists)}, id from slice
      union all select app_id, ${numberSql('status', statusLists)}, id from slice order by 1, 2, 3`,
  },
  {
    table: 'events',
    key: 'seq',
    rows: `select developer_id, ${numberSql(environmentSql, logLists)}, seq from slice
      union all select ifnull(app_id, developer_id), ${numberSql('type', typeLists)}, seq from slice order by 1, 2, 3`,
  },
  {
    table: 'inbox_messages',
    key: 'seq',
    rows: `select developer_id, ${inboxList}, seq from slice order by 1, 2, 3`,
  },
  {
    table: 'phones',
    key: 'key',
    rows: `select developer_id, ${numberSql('environment', userLists)}, identity_id || ':' || printf('%014x', key)
      from slice where identity_id is not null order by 1, 2, 3`,
  },
  {
    table: 'webhook_deliveries',
    key: 'id',
    rows: `select endpoint_id, ${deliveryListSql}, id from slice order by 1, 2, 3`,
  },
]

type Key = string | number

/**
 * Fills the lists from the rows of all tables, inside the transaction that is open, instead of what they have.
 */
export function fillLists(connection: SqliteConnection): void {
  connection.run('delete from lists')
  // The last row stays, so that its number is not used again.
  connection.run('delete from list_changes where seq < (select max(seq) from list_changes)')
  connection.run(`update list_changes set changes = '[]'`)
  connection.run(
    'create temp table known_applications (number integer primary key, environment text not null)',
  )
  connection.run(`insert into known_applications
    select number, environment from applications join short_ids using (id)
    union select number, environment from deleted_applications join short_ids using (id)`)
  for (const source of sources) fillFrom(connection, source)
  connection.run('drop table known_applications')
}

function fillFrom(connection: SqliteConnection, { table, key, rows }: Source): void {
  const fill = connection.prepare<never, [Key, Key]>(`insert into lists
    with slice as (select * from ${table} where ${key} > ? and ${key} <= ?) ${rows}`)
  const endOfSlice = connection.prepare<{ key: Key | null }, [Key, number]>(
    `select max(key) as key from (select ${key} as key from ${table} where ${key} > ? order by ${key} limit ?)`,
  )
  // No row has such a key.
  let from: Key = key === 'id' ? '' : -1
  for (;;) {
    const to: Key | null | undefined = endOfSlice.get(from, sliceRows)?.key
    if (to === null || to === undefined) break
    fill.run(from, to)
    from = to
  }
  // An open statement keeps the file open after its connection is closed.
  fill.finalize()
  endOfSlice.finalize()
}
