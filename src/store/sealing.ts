import { and, asc, eq, getTableColumns, sql, type InferSelectModel } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Keys } from '../domain/model/keys.ts'
import { isPlainPhone } from '../domain/model/pseudonyms.ts'
import { isSealedWith, type SealedColumn } from './engine/sealing.ts'
import type { SealedTable } from '../domain/model/sealed-tables.ts'
import type { SealingStore } from '../domain/store/sealing.ts'
import { mapProperties, pick } from '../shared/fields.ts'
import type { Connection } from './engine/connection.ts'
import type { Tables } from './engine/tables.ts'
import { payloadRow, phoneRow } from './engine/sealing.ts'
import { idempotencyRow } from './idempotency.ts'
import { attemptRow } from './webhook-delivery-rows.ts'
import { openHeaders, sealHeaders } from './webhook-headers.ts'

/** Brings sealed columns to the newest version of the seal key. */
export function createSealingStore(connection: Connection, keys: Pick<Keys, 'seals'>): SealingStore {
  const tables = defineSealedTables(connection.database.tables)
  const converters: Record<SealedTable, Converter> = mapProperties(tables, (table) =>
    createConverter(connection, table, keys),
  )
  return { sealRows: (table, position, limit) => converters[table](position, limit) }
}

/** Converts the rows of a table after a position. @returns the new position; undefined if no row was left */
type Converter = (position: string, limit: number) => Promise<string | undefined>

type Row = Record<string, unknown>

/** Names a row in the associated data of its values. */
type RowName = (row: Row) => string

type TableDefinition = {
  table: SQLiteTable
  /** Fields of the primary key. */
  key: readonly string[]
  /** Other fields that the names of rows need. */
  also: readonly string[]
  /** By field: the name of the column in the associated data, and that of the row. */
  sealed: Readonly<Record<string, readonly [SealedColumn, RowName]>>
}

/** Defines the tables with sealed columns. */
function defineSealedTables(tables: Tables): Record<SealedTable, TableDefinition> {
  type Field<T extends SQLiteTable> = keyof InferSelectModel<T> & string
  const define = <T extends SQLiteTable>(
    table: T,
    key: ReadonlyArray<Field<T>>,
    sealed: { [Name in Field<T>]?: readonly [SealedColumn, RowName] },
    also: ReadonlyArray<Field<T>> = [],
  ): TableDefinition => ({ table, key, sealed: sealed as TableDefinition['sealed'], also })
  const id: RowName = (row) => String(row['id'])
  return {
    applications: define(tables.applications, ['id'], { webhookSecret: ['applications.webhook_secret', id] }),
    webhook_endpoints: define(tables.webhookEndpoints, ['id'], {
      headers: ['webhook_endpoints.headers', id],
    }),
    idempotency_keys: define(tables.idempotencyKeys, ['caller', 'route', 'key'], {
      answer: [
        'idempotency_keys.answer',
        ({ caller, route, key }) =>
          idempotencyRow({ caller: String(caller), route: String(route), key: String(key) }),
      ],
    }),
    webhook_attempts: define(tables.webhookAttempts, ['deliveryId', 'number'], {
      body: [
        'webhook_attempts.body',
        ({ deliveryId, number }) => attemptRow(String(deliveryId), Number(number)),
      ],
    }),
    phones: define(tables.phones, ['key'], { phone: ['phones.phone', (row) => String(row['phoneHash'])] }, [
      'phoneHash',
    ]),
    otp_requests: define(tables.otpRequests, ['id'], {
      phone: ['otp_requests.phone', id],
      clientIp: ['otp_requests.client_ip', id],
      metadata: ['otp_requests.metadata', id],
      ownText: ['otp_requests.own_text', id],
      template: ['otp_requests.template', id],
    }),
    relayed_messages: define(tables.relayedMessages, ['id'], {
      phone: ['relayed_messages.phone', id],
      clientIp: ['relayed_messages.client_ip', id],
    }),
    guard_rules: define(tables.guardRules, ['developerId'], {
      rules: ['guard_rules.rules', (row) => String(row['developerId'])],
    }),
    otp_sessions: define(tables.otpSessions, ['id'], { details: ['otp_sessions.details', id] }),
    events: define(
      tables.events,
      ['seq'],
      {
        phone: ['otp_requests.phone', (row) => phoneRow(toEntry(row))],
        payload: ['events.payload', (row) => payloadRow(toEntry(row))],
      },
      ['requestId', 'type', 'at'],
    ),
  }
}

const toEntry = ({ requestId, type, at }: Row) => ({
  requestId: requestId === null ? null : String(requestId),
  type: String(type),
  at: Number(at),
})

function createConverter(
  { database, executor, sealing }: Connection,
  { table, key, also, sealed }: TableDefinition,
  keys: Pick<Keys, 'seals'>,
): Converter {
  const sealedFields = Object.keys(sealed)
  const columns = pick(getTableColumns(table), [...key, ...also, ...sealedFields])
  const keyColumns = key.map((name) => columns[name] as SQLiteColumn)
  const p = sql.placeholder
  const update = database.prepare(() =>
    executor
      .update(table)
      .set(Object.fromEntries(sealedFields.map((name) => [name, sql`${p(`${name}New`)}`])))
      .where(
        and(
          ...key.map((name) => eq(columns[name] as SQLiteColumn, p(name))),
          ...sealedFields.map((name) => sql`${columns[name]} is not distinct from cast(${p(name)} as text)`),
        ),
      ),
  )

  /** Seals a value with the newest key. @returns the stored value itself if there is nothing to convert */
  function convert(column: SealedColumn, row: string, stored: string): string {
    if (isSealedWith(keys.seals.version, stored)) return stored
    if (column === 'webhook_endpoints.headers') {
      const headers = openHeaders(sealing, row, stored)
      return headers === null ? stored : (sealHeaders(sealing, row, headers) ?? stored)
    }
    if (!column.endsWith('.phone'))
      return sealing.sealText(column, row, sealing.openText(column, row, stored)) ?? stored
    const phone = sealing.openPhone(column, row, stored)
    return isPlainPhone(phone) ? sealing.sealPhone(column, row, phone) : stored
  }

  /** @returns the values of the update; undefined if the row has nothing to convert */
  function convertRow(row: Row): Row | undefined {
    const values = { ...row }
    let isChanged = false
    for (const [name, [column, rowName]] of Object.entries(sealed)) {
      const stored = row[name] ?? null
      const converted = typeof stored === 'string' ? convert(column, rowName(row), stored) : stored
      values[`${name}New`] = converted
      if (converted !== stored) isChanged = true
    }
    return isChanged ? values : undefined
  }

  return async (position, limit) => {
    const after: unknown[] = position === '' ? [] : JSON.parse(position)
    const rows: Row[] = await executor
      .select(columns)
      .from(table)
      .where(
        after.length === 0
          ? undefined
          : sql`(${sql.join(keyColumns, sql`, `)}) > (${sql.join(
              after.map((value) => sql`${value}`),
              sql`, `,
            )})`,
      )
      .orderBy(...keyColumns.map((column) => asc(column)))
      .limit(limit)
    for (const row of rows) {
      const values = convertRow(row)
      if (values) await update(values)
    }
    const last = rows.at(-1)
    return last && JSON.stringify(key.map((name) => last[name]))
  }
}
