import type { Connection } from '../../src/store/engine/connection.ts'
import type { Database } from '../../src/store/engine/database.ts'
import { createSealing, type SealedColumn } from '../../src/store/engine/sealing.ts'
import { testKeys } from './keys.ts'

type Row = Record<string, unknown>

const sealing = createSealing(testKeys, (bytes) => crypto.getRandomValues(bytes))

/** Returns the connection of a database that only reads, for parts of the store. */
export const readConnection = (database: Database): Connection => ({
  database,
  executor: database.read,
  sealing,
})

/** Reads all rows of a table as they are stored. */
export async function readStored(database: Database, table: keyof Database['tables']): Promise<Row[]> {
  return database.read.select().from(database.tables[table])
}

/** Reads all rows of a table, decrypted. */
export async function readOpened(database: Database, table: keyof Database['tables']): Promise<Row[]> {
  const open = openers[table] ?? ((row: Row) => row)
  return (await readStored(database, table)).map(open)
}

/** Returns all rows of all tables as one text, decrypted, in which a test looks for traces. */
export async function readEverything(database: Database): Promise<string> {
  const rows = []
  for (const table of Object.keys(database.tables) as Array<keyof Database['tables']>)
    rows.push(await readOpened(database, table))
  return JSON.stringify(rows)
}

const stringOrNull = (value: unknown) => (typeof value === 'string' ? value : null)

const text = (column: SealedColumn, row: string, value: unknown) =>
  sealing.openText(column, row, stringOrNull(value))

const phone = (row: string, value: unknown, column: SealedColumn = 'otp_requests.phone') =>
  sealing.openPhone(column, row, stringOrNull(value))

const openers: { [table: string]: (row: Row) => Row } = {
  applications: (row) => ({
    ...row,
    webhookSecret: text('applications.webhook_secret', String(row['id']), row['webhookSecret']),
  }),
  events: (row) => ({
    ...row,
    phone: phone(String(row['requestId']), row['phone']),
    payload: text('events.payload', `${row['requestId']} ${row['type']} ${row['at']}`, row['payload']),
  }),
  idempotencyKeys: (row) => ({
    ...row,
    answer: text(
      'idempotency_keys.answer',
      [row['caller'], row['route'], row['key']].join('\n'),
      row['answer'],
    ),
  }),
  otpRequests: (row) => {
    const id = String(row['id'])
    return {
      ...row,
      phone: phone(id, row['phone']),
      clientIp: text('otp_requests.client_ip', id, row['clientIp']),
      metadata: text('otp_requests.metadata', id, row['metadata']),
      ownText: text('otp_requests.own_text', id, row['ownText']),
      template: text('otp_requests.template', id, row['template']),
    }
  },
  guardRules: (row) => ({
    ...row,
    rules: text('guard_rules.rules', String(row['developerId']), row['rules']),
  }),
  relayedMessages: (row) => ({
    ...row,
    phone: phone(String(row['id']), row['phone'], 'relayed_messages.phone'),
    clientIp: text('relayed_messages.client_ip', String(row['id']), row['clientIp']),
  }),
  phones: (row) => ({ ...row, phone: phone(String(row['phoneHash']), row['phone'], 'phones.phone') }),
  webhookAttempts: (row) => ({
    ...row,
    body: text('webhook_attempts.body', `${row['deliveryId']} ${row['number']}`, row['body']),
  }),
  webhookEndpoints: (row) => ({
    ...row,
    headers: text('webhook_endpoints.headers', String(row['id']), row['headers']),
  }),
}
