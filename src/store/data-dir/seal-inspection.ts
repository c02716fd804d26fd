import type { Database as SqliteConnection } from 'bun:sqlite'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { sealedTables } from '../../domain/model/sealed-tables.ts'
import { createKeyring, type DataKey } from '../../domain/model/keys.ts'
import { createSealing, type SealedColumn, type UnreadableValue } from '../engine/sealing.ts'
import { readDatabase } from './open-readonly.ts'
import { primaryKey } from '../sqlite/primary-key.ts'

/** How far a database is sealed. */
export type SealInspection = {
  /**
   * Percentage of the work that seals all rows with the newest key. Null without rows, and once all are sealed and the free
   * space is overwritten.
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

/** Expressions for the row of each sealed column in the associated data. */
const rowNames: Readonly<Record<SealedColumn, string>> = {
  'applications.webhook_secret': 'id',
  'events.payload': `coalesce(request_id, '') || ' ' || type || ' ' || at`,
  'guard_rules.rules': 'developer_id',
  'idempotency_keys.answer': 'caller || char(10) || route || char(10) || key',
  'otp_requests.client_ip': 'id',
  'otp_requests.metadata': 'id',
  'otp_requests.own_text': 'id',
  'otp_requests.phone': 'id',
  'otp_requests.template': 'id',
  'otp_sessions.details': 'id',
  'phones.phone': 'phone_hash',
  'relayed_messages.client_ip': 'id',
  'relayed_messages.phone': 'id',
  'webhook_attempts.body': `delivery_id || ' ' || number`,
  'webhook_endpoints.headers': 'id',
}

/** Times of tables whose primary keys are not in the order of time. */
const timeColumns = new Map([
  ['idempotency_keys', 'created_at'],
  ['phones', 'last_sent_at'],
])

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
  // Requests are linked to their phones before they are sealed, which takes about as long.
  const backfills = ['links.otp_requests', ...sealedTables.map((table) => `seals.${table}`)]
  for (const backfill of backfills) {
    const table = backfill.slice(backfill.indexOf('.') + 1)
    const tableRows = count(connection, `select count(*) from ${table}`)
    const position = positions.get(backfill)
    rows += tableRows
    if (position === null) sealedRows += tableRows
    else if (position !== undefined) {
      // The backfills of seals store the values of a key as a JSON array.
      const last: Array<string | number> = backfill.startsWith('seals.') ? JSON.parse(position) : [position]
      const marks = last.map(() => '?').join()
      const key = primaryKey(connection, table).join()
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
  /** Opens the newest values of a column. @param rowName expression for the row in the associated data */
  const check = (name: SealedColumn, table: string, rowName: string) => {
    const column = name.slice(name.indexOf('.') + 1)
    const order = timeColumns.get(table) ?? primaryKey(connection, table)[0]
    const values = connection
      .query<{ row: string; stored: string }, [number]>(
        `select ${rowName} as row, ${column} as stored from ${table} where ${column} is not null
         order by ${order} desc limit ?`,
      )
      .all(checkedRowsMax)
    for (const { row, stored } of values) {
      if (column === 'phone') sealing.openPhone(name, row, stored)
      else sealing.openText(name, row, stored)
    }
  }
  // Its keys are those of the type.
  for (const [name, rowName] of Object.entries(rowNames) as Array<[SealedColumn, string]>)
    check(name, name.slice(0, name.indexOf('.')), rowName)
  // A log entry keeps its phone as its request does: see `phoneRow`.
  check('otp_requests.phone', 'events', 'coalesce(request_id, cast(at as text))')
  return [...unreadable]
}

const count = (connection: SqliteConnection, query: string, values: Array<string | number> = []): number =>
  Number(connection.query<never, Array<string | number>>(query).values(...values)[0]?.[0] ?? 0)

/** Lists the backups that 0.1.0 made, or a server that had not sealed its database yet. */
export function listUnsealedBackups(folder: string): string[] {
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).filter((name) => name.endsWith('.db'))
  return names.toSorted().filter((name) => {
    try {
      return !readDatabase(join(folder, name), isSealed)
    } catch {
      // Damaged, or not a database: it is reported when it is restored.
      return false
    }
  })
}
