import { and, asc, eq, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Keys } from '../domain/model/keys.ts'
import { isPlainPhone } from '../domain/model/pseudonyms.ts'
import { isSealedWith, type SealedColumn } from './engine/sealing.ts'
import type { SealedTable } from '../domain/model/sealed-tables.ts'
import type { SealingStore } from '../domain/store/sealing.ts'
import type { Connection } from './engine/connection.ts'
import { payloadRow, phoneRow } from './event-rows.ts'
import { idempotencyRow } from './idempotency.ts'
import { attemptRow } from './webhook-delivery-rows.ts'
import { openHeaders, sealHeaders } from './webhook-headers.ts'

/** Brings sealed columns to the newest version of the seal key. */
export function createSealingStore(connection: Connection, keys: Pick<Keys, 'seals'>): SealingStore {
  const convertersByTable = createConverters(connection, keys)
  return { sealRows: (table, position, limit) => convertersByTable[table](position, limit) }
}

/** Converts the rows of a table after a position. @returns the new position; undefined if no row was left */
type Converter = (position: string, limit: number) => Promise<string | undefined>

type Row = Record<string, unknown>

function createConverters(connection: Connection, keys: Pick<Keys, 'seals'>): Record<SealedTable, Converter> {
  const { database, sealing } = connection
  const { applications, webhookEndpoints, idempotencyKeys, webhookAttempts, phones, otpRequests, events } =
    database.tables
  const { relayedMessages, guardRules, otpSessions } = database.tables
  const isCurrent = (stored: string) => isSealedWith(keys.seals.version, stored)

  // Each returns the stored value itself if there is nothing to convert.
  const text = (column: SealedColumn) => (row: string, stored: string) =>
    isCurrent(stored)
      ? stored
      : (sealing.sealText(column, row, sealing.openText(column, row, stored)) ?? stored)
  const phone = (column: SealedColumn) => (row: string, stored: string) => {
    if (isCurrent(stored)) return stored
    const opened = sealing.openPhone(column, row, stored)
    return isPlainPhone(opened) ? sealing.sealPhone(column, row, opened) : stored
  }
  const headers = (row: string, stored: string) => {
    const opened = isCurrent(stored) ? null : openHeaders(sealing, row, stored)
    return opened === null ? stored : (sealHeaders(sealing, row, opened) ?? stored)
  }
  const id = (row: Row) => String(row['id'])
  const create = <T extends SQLiteTable>(
    table: T,
    definition: Pick<Definition, 'key' | 'sealed'> & { also?: Definition['also'] },
  ) => createConverter(connection, { table, also: {}, ...definition })

  const createById = <T extends SQLiteTable & { id: SQLiteColumn }>(table: T, sealed: Definition['sealed']) =>
    create(table, { key: { id: table.id }, sealed })

  return {
    applications: createById(applications, {
      webhookSecret: [applications.webhookSecret, id, text('applications.webhook_secret')],
    }),
    webhook_endpoints: createById(webhookEndpoints, { headers: [webhookEndpoints.headers, id, headers] }),
    idempotency_keys: create(idempotencyKeys, {
      key: { caller: idempotencyKeys.caller, route: idempotencyKeys.route, key: idempotencyKeys.key },
      sealed: {
        answer: [
          idempotencyKeys.answer,
          ({ caller, route, key }) =>
            idempotencyRow({ caller: String(caller), route: String(route), key: String(key) }),
          text('idempotency_keys.answer'),
        ],
      },
    }),
    webhook_attempts: create(webhookAttempts, {
      key: { deliveryId: webhookAttempts.deliveryId, number: webhookAttempts.number },
      sealed: {
        body: [
          webhookAttempts.body,
          ({ deliveryId, number }) => attemptRow(String(deliveryId), Number(number)),
          text('webhook_attempts.body'),
        ],
      },
    }),
    phones: create(phones, {
      key: { key: phones.key },
      also: { phoneHash: phones.phoneHash },
      sealed: {
        phone: [phones.phone, (row) => String(row['phoneHash']), phone('phones.phone')],
      },
    }),
    otp_requests: createById(otpRequests, {
      phone: [otpRequests.phone, id, phone('otp_requests.phone')],
      clientIp: [otpRequests.clientIp, id, text('otp_requests.client_ip')],
      metadata: [otpRequests.metadata, id, text('otp_requests.metadata')],
      ownText: [otpRequests.ownText, id, text('otp_requests.own_text')],
      template: [otpRequests.template, id, text('otp_requests.template')],
    }),
    relayed_messages: createById(relayedMessages, {
      phone: [relayedMessages.phone, id, phone('relayed_messages.phone')],
      clientIp: [relayedMessages.clientIp, id, text('relayed_messages.client_ip')],
    }),
    guard_rules: create(guardRules, {
      key: { developerId: guardRules.developerId },
      sealed: {
        rules: [guardRules.rules, (row) => String(row['developerId']), text('guard_rules.rules')],
      },
    }),
    otp_sessions: createById(otpSessions, {
      details: [otpSessions.details, id, text('otp_sessions.details')],
    }),
    events: create(events, {
      key: { seq: events.seq },
      also: { requestId: events.requestId, type: events.type, at: events.at },
      sealed: {
        phone: [events.phone, (row) => phoneRow(toEntry(row)), phone('otp_requests.phone')],
        payload: [events.payload, (row) => payloadRow(toEntry(row)), text('events.payload')],
      },
    }),
  }
}

const toEntry = ({ requestId, type, at }: Row) => ({
  requestId: requestId === null ? null : String(requestId),
  type: String(type),
  at: Number(at),
})

type Definition = {
  table: SQLiteTable
  key: Record<string, SQLiteColumn>
  /** Other columns that the names of rows need. */
  also: Record<string, SQLiteColumn>
  /** By field: the column, the name of a row in the associated data, and the conversion of a value. */
  sealed: Record<string, [SQLiteColumn, (row: Row) => string, (row: string, stored: string) => string]>
}

function createConverter(
  { database, executor }: Connection,
  { table, key, also, sealed }: Definition,
): Converter {
  const keyColumns = Object.values(key)
  const columns = Object.fromEntries(Object.entries(sealed).map(([name, [column]]) => [name, column]))
  const p = sql.placeholder
  const update = database.prepare(() =>
    executor
      .update(table)
      .set(Object.fromEntries(Object.keys(sealed).map((name) => [name, sql`${p(`${name}New`)}`])))
      .where(
        and(
          ...Object.entries(key).map(([name, column]) => eq(column, p(name))),
          ...Object.entries(columns).map(
            ([name, column]) => sql`${column} is not distinct from cast(${p(name)} as text)`,
          ),
        ),
      ),
  )

  /** @returns the values of the update; undefined if the row has nothing to convert */
  function convertRow(row: Row): Row | undefined {
    const values = { ...row }
    let isChanged = false
    for (const [name, [, rowName, convert]] of Object.entries(sealed)) {
      const stored = row[name] ?? null
      const converted = typeof stored === 'string' ? convert(rowName(row), stored) : stored
      values[`${name}New`] = converted
      if (converted !== stored) isChanged = true
    }
    return isChanged ? values : undefined
  }

  return async (position, limit) => {
    const after: unknown[] = position === '' ? [] : JSON.parse(position)
    const rows: Row[] = await executor
      .select({ ...key, ...also, ...columns })
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
    return last && JSON.stringify(Object.keys(key).map((name) => last[name]))
  }
}
