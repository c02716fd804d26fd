import type { Database as SqliteConnection } from 'bun:sqlite'
import { appendKey, isFull, openChunk, type ListOwner, type OpenChunk } from './list-chunks.ts'

/** Lists, and full chunks, that are held in memory before they are written. */
const openListsMax = 20_000
const fullChunksMax = 4_000

type Row = {
  owner: ListOwner
  second: ListOwner | null
  key: string | number
  value: string
  environment: string
}

/**
 * Selects the rows of some lists in the order of their keys: two owners at most, the status or type, and the environment.
 */
type Source = { sql: string; lists(value: string): string[] }

/** All lists of the newest schema that changed them, with their names and keys of then. Those of test end with `test`. */
const sources: Source[] = [
  {
    sql: 'select developer_id as owner, app_id as second, id as key, status as value, environment from otp_requests order by id',
    lists: (status) => [`requests ${status}`],
  },
  {
    sql: `select developer_id as owner, app_id as second, seq as key, type as value,
      coalesce((select environment from app_environments as a where a.number = app_id), 'live') as environment
      from events order by seq`,
    lists: (type) => ['log', `log ${type}`],
  },
  {
    sql: `select developer_id as owner, null as second, seq as key, '' as value, 'live' as environment
      from inbox_messages order by seq`,
    lists: () => ['inbox'],
  },
  {
    sql: `select developer_id as owner, null as second, identity_id || ':' || printf('%014x', phones.key) as key,
      '' as value, environment from phones where identity_id is not null order by identity_id`,
    lists: () => ['users'],
  },
  {
    sql: `select endpoint_id as owner, null as second, id as key, status || ' ' || type as value, 'live' as environment
      from webhook_deliveries order by id`,
    lists: (statusAndType) => [`deliveries ${statusAndType}`],
  },
]

/** Environments of all applications that rows name. */
const environmentsSql = `create temp table app_environments as
  select number, environment from applications join short_ids using (id)
  union select number, environment from deleted_applications join short_ids using (id)`

/** Fills the lagging index from the rows, inside the transaction that is open, instead of what it has. */
export function fillListIndex(connection: SqliteConnection): void {
  connection.run('delete from list_chunks')
  // The last row stays, so that its number is not used again.
  connection.run('delete from list_changes where seq < (select max(seq) from list_changes)')
  connection.run(`update list_changes set changes = ''`)
  connection.run(
    `${environmentsSql}; create index temp.app_environments_by_number on app_environments (number)`,
  )
  const insert = connection.prepare<never, [ListOwner, string, string, string]>(
    'insert into list_chunks (owner, list, first, keys) values (?, ?, ?, ?)',
  )
  for (const { sql, lists } of sources) {
    const names = new Map<string, string[]>()
    const open = new Map<string, Map<ListOwner, OpenChunk>>()
    let openLists = 0
    let full: Array<[ListOwner, string, OpenChunk]> = []

    /** Writes in the order of the owners, which are neighbors in the table. */
    const writeFull = () => {
      full.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      for (const [owner, list, { first, keys }] of full) insert.run(owner, list, first, keys)
      full = []
    }
    const writeAll = () => {
      for (const [list, chunks] of open) for (const [owner, chunk] of chunks) full.push([owner, list, chunk])
      open.clear()
      openLists = 0
      writeFull()
    }
    const append = (owner: ListOwner, list: string, key: string) => {
      let chunks = open.get(list)
      if (!chunks) open.set(list, (chunks = new Map()))
      const chunk = chunks.get(owner)
      if (chunk && !isFull(chunk)) return appendKey(chunk, key)
      if (chunk) full.push([owner, list, chunk])
      else openLists++
      chunks.set(owner, openChunk(key))
    }

    const rows = connection.prepare<Row, []>(sql)
    for (const { owner, second, key, value, environment } of rows.iterate()) {
      const name = `${environment} ${value}`
      let rowLists = names.get(name)
      if (!rowLists) {
        const suffix = environment === 'live' ? '' : ` ${environment}`
        names.set(name, (rowLists = lists(value).map((list) => list + suffix)))
      }
      const text = typeof key === 'number' ? key.toString(16).padStart(11, '0') : key
      for (const list of rowLists) {
        append(owner, list, text)
        if (second !== null) append(second, list, text)
      }
      if (openLists > openListsMax) writeAll()
      else if (full.length > fullChunksMax) writeFull()
    }
    writeAll()
    rows.finalize()
  }
  insert.finalize()
  connection.run('drop table app_environments')
}
