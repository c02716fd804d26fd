import type { Database as SqliteConnection } from 'bun:sqlite'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createKeyring, type DataKey } from '../../domain/model/keys.ts'
import { createSealing, type SealedColumn, type UnreadableValue } from '../engine/sealing.ts'
import { openReadonly } from './open-readonly.ts'

/** How far a database is sealed. */
export type SealInspection = {
  /**
   * Percentage of the work that seals all rows with the newest key; null if there are none, or once all are and the free space is
   * overwritten.
   */
  percent: number | null
  /**
   * Values that cannot be decrypted, among the newest rows of each table, as `table.column row`. Null if there is no
   * master key to check them with.
   */
  unreadable: string[] | null
}

/** Rows per column that are decrypted: enough to find a wrong key at once, and a fraction of a second. */
const checkedRowsMax = 10_000

type SealedValue = { table: string; column: string; name: SealedColumn; row: string; order: string }

/** Sealed columns, with an expression for the row in the associated data, and the order from new to old. */
const sealedValues: readonly SealedValue[] = [
  sealedValue('applications.webhook_secret', 'id', 'id desc'),
  sealedValue('webhook_endpoints.headers', 'id', 'id desc'),
  sealedValue('idempotency_keys.answer', `caller || char(10) || route || char(10) || key`, 'created_at desc'),
  sealedValue('webhook_attempts.body', `delivery_id || ' ' || number`, 'delivery_id desc'),
  sealedValue('phones.phone', 'phone_hash', 'last_sent_at desc'),
  sealedValue('relayed_messages.phone', 'id', 'id desc'),
  sealedValue('relayed_messages.client_ip', 'id', 'id desc'),
  sealedValue('guard_rules.rules', 'developer_id', 'developer_id desc'),
  sealedValue('otp_requests.phone', 'id', 'id desc'),
  sealedValue('otp_requests.client_ip', 'id', 'id desc'),
  sealedValue('otp_requests.metadata', 'id', 'id desc'),
  sealedValue('otp_requests.own_text', 'id', 'id desc'),
  sealedValue('events.payload', `coalesce(request_id, '') || ' ' || type || ' ' || at`, 'seq desc'),
  // An entry without a request: see `phoneRow`.
  {
    ...sealedValue('otp_requests.phone', 'coalesce(request_id, cast(at as text))', 'seq desc'),
    table: 'events',
  },
]

function sealedValue(name: SealedColumn, row: string, order: string): SealedValue {
  const [table = '', column = ''] = name.split('.')
  return { table, column, name, row, order }
}

/**
 * Walks in their order, with the table and its primary key: requests are linked to their phones before they are sealed, which
 * takes about as long.
 */
const walks = [
  ['links.otp_requests', 'otp_requests', 'id'],
  ['seals.applications', 'applications', 'id'],
  ['seals.webhook_endpoints', 'webhook_endpoints', 'id'],
  ['seals.idempotency_keys', 'idempotency_keys', 'caller, route, key'],
  ['seals.webhook_attempts', 'webhook_attempts', 'delivery_id, number'],
  ['seals.phones', 'phones', 'key'],
  ['seals.otp_requests', 'otp_requests', 'id'],
  ['seals.events', 'events', 'seq'],
  ['seals.relayed_messages', 'relayed_messages', 'id'],
  ['seals.guard_rules', 'guard_rules', 'developer_id'],
] as const

/**
 * Inspects how far a database is sealed. Reads only.
 *
 * @param connection of a database with the schema of this version
 * @param dataKeys undefined if no master key is at hand
 */
export function inspectSeals(
  connection: SqliteConnection,
  dataKeys: readonly DataKey[] | undefined,
): SealInspection {
  return {
    percent: sealedPercent(connection),
    unreadable: dataKeys === undefined ? null : listUnreadable(connection, dataKeys),
  }
}

/** Tells whether a database holds only sealed values, of any version of the key. */
const isSealed = (connection: SqliteConnection): boolean =>
  connection.query(`select 1 from sqlite_schema where name = 'key_walks'`).get() !== null &&
  connection.query(`select 1 from key_walks where walk = 'seals.free_space'`).get() !== null

function sealedPercent(connection: SqliteConnection): number | null {
  const version = count(connection, `select max(version) from data_keys where purpose = 'seals'`)
  const states = connection
    .query<{ walk: string; position: string | null }, [number]>(
      'select walk, position from key_walks where version = ?',
    )
    .all(version)
  const positions = new Map(states.map(({ walk, position }) => [walk, position]))
  if (positions.has('seals.free_space')) return null
  let rows = 0
  let sealedRows = 0
  for (const [walk, table, key] of walks) {
    const tableRows = count(connection, `select count(*) from ${table}`)
    const position = positions.get(walk)
    rows += tableRows
    if (position === null) sealedRows += tableRows
    else if (position !== undefined) {
      // The walks of seals store the values of a key as a JSON array.
      const last: Array<string | number> = walk.startsWith('seals.') ? JSON.parse(position) : [position]
      const marks = last.map(() => '?').join(', ')
      sealedRows += count(connection, `select count(*) from ${table} where (${key}) <= (${marks})`, last)
    }
  }
  return rows === 0 ? null : Math.floor((100 * sealedRows) / rows)
}

function listUnreadable(connection: SqliteConnection, dataKeys: readonly DataKey[]): string[] {
  const unreadable = new Set<string>()
  const onUnreadable = ({ column, row }: UnreadableValue) => void unreadable.add(`${column} ${row}`)
  const { keys } = createKeyring(dataKeys)
  const sealing = createSealing(keys, (bytes) => crypto.getRandomValues(bytes), onUnreadable)
  for (const { table, column, name, row, order } of sealedValues) {
    const values = connection
      .query<{ row: string; stored: string }, [number]>(
        `select ${row} as row, ${column} as stored from ${table} where ${column} is not null order by ${order} limit ?`,
      )
      .all(checkedRowsMax)
    for (const { row, stored } of values) {
      if (column === 'phone') sealing.openPhone(name, row, stored)
      else sealing.openText(name, row, stored)
    }
  }
  return [...unreadable]
}

const count = (connection: SqliteConnection, query: string, values: Array<string | number> = []): number =>
  Number(connection.query<never, Array<string | number>>(query).values(...values)[0]?.[0] ?? 0)

/** Lists the backups that 0.1.0 made, or a server that had not sealed its database yet. */
export function listUnsealedBackups(folder: string): string[] {
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).filter((name) => name.endsWith('.db'))
  return names.toSorted().filter((name) => {
    let connection: SqliteConnection | undefined
    try {
      connection = openReadonly(join(folder, name))
      return !isSealed(connection)
    } catch {
      // Damaged, or not a database: it is reported when it is restored.
      return false
    } finally {
      connection?.close()
    }
  })
}
