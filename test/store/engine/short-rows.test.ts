import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { createRequestLog } from '../../../src/domain/log/request-log.ts'
import { hmac } from '../../../src/shared/hmac.ts'
import { hashCode } from '../../../src/domain/model/code.ts'
import { derivePseudonym } from '../../../src/domain/model/pseudonyms.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { postgresMigrations, sqliteMigrations } from '../../../src/store/engine/migration-files.ts'
import { migrateSqlite } from '../../../src/store/sqlite/migrate.ts'
import { wrapPglite } from '../../helpers/pglite.ts'
import { connect, openSqlite } from '../../../src/store/sqlite/database.ts'
import { loadEventIds } from '../../../src/store/event-ids.ts'
import { createStore } from '../../../src/store/store.ts'
import { openPatientPostgres } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { readConnection } from '../../helpers/sealed-rows.ts'
import { createEmptyPostgres, testPostgresUrl } from '../../helpers/postgres.ts'

const phone = '+14155550142'
const oldPseudonym = `anon_${hmac(testKeys.pseudonym[0] ?? Buffer.of())
  .update(`dev_ada\n${phone}`)
  .digest('base64url')}`
const oldHash = hmac(testKeys.codeHash).update('otp_1').update('123456').digest('base64url')
const application = (id: string) => `
  insert into applications (id, developer_id, project_id, name, environment, status, otp_ttl_seconds, client_id_salt,
    client_id_hash, client_secret_salt, client_secret_hash, client_secret_preview, api_key_salt, api_key_hash,
    api_key_preview, webhook_secret, created_at, updated_at)
  values ('${id}', 'dev_ada', 'prj_1', '', 'live', 'active', 300, '', '', '', '', '', '', '', '', 's', 0, 0);`

/** Rows as 0.1 wrote them, with one deleted application and one request that is pseudonymized by age. */
const history = `
  insert into developers (id, plan, virtual_phone, status, created_at, updated_at)
    values ('dev_ada', 'free', '+15005550000', 'active', 0, 0);
  insert into projects (id, developer_id, name, created_at, updated_at) values ('prj_1', 'dev_ada', '', 0, 0);
  ${application('app_1')}
  insert into otp_requests (id, developer_id, project_id, app_id, environment, phone, status, channel, code_salt, code_hash,
    created_at, sent_at, expires_at, verified_at, updated_at)
  values ('otp_0', 'dev_ada', 'prj_1', 'app_gone', 'test', '${oldPseudonym}', 'verified', 'sms', '', '', 1, 1, 2, 2, 2),
    ('otp_1', 'dev_ada', 'prj_1', 'app_1', 'live', '${phone}', 'pending', 'sms', '', '${oldHash}', 3, 3, 4, null, 3);
  insert into events (seq, id, type, developer_id, app_id, request_id, phone, status, payload, at)
  values (1, 'evt_x', 'otp.verified', 'dev_ada', 'app_gone', 'otp_0', '${oldPseudonym}', 'verified', null, 2),
    (2, 'evt_y', 'otp.sent', 'dev_ada', 'app_1', 'otp_1', '${phone}', 'pending', '{"id":"evt_y"}', 3),
    (3, 'evt_z', 'webhook.disabled', 'dev_ada', null, null, null, null, null, 4);
  update counters set value = 3 where name = 'event_seq';
  insert into inbox_messages (id, developer_id, request_id, request_visible, sent_at)
    values ('evt_y', 'dev_ada', 'otp_1', 1, 3);
  insert into identities (id, developer_id, phone, verification_count, first_verified_at, last_verified_at)
    values ('idn_1', 'dev_ada', '${oldPseudonym}', 1, 2, 2);
  insert into identity_applications (identity_id, app_id) values ('idn_1', 'app_gone');
  insert into webhook_endpoints (id, developer_id, app_id, url, events, status, created_at, updated_at)
    values ('whk_1', 'dev_ada', 'app_1', 'https://example.com', '*', 'enabled', 0, 0);
  insert into webhook_deliveries (id, endpoint_id, event_seq, type, status, created_at)
    values ('dlv_1', 'whk_1', 2, 'otp.sent', 'pending', 3);`

async function upgradedSqlite(): Promise<Database> {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-test-'))
  const path = join(folder, 'otpd.db')
  const connection = connect(path, 0)
  migrateSqlite(connection, 0, sqliteMigrations.slice(0, 8))
  connection.run(history)
  migrateSqlite(connection, 0)
  connection.close()
  const database = openSqlite(path, {
    onDiskFault: (error) => {
      throw error
    },
  })
  return {
    ...database,
    async close() {
      await database.close()
      rmSync(folder, { recursive: true })
    },
  }
}

const postgresHistory = [
  ...postgresMigrations.slice(0, 8).map(({ sql }) => sql),
  history,
  ...postgresMigrations.slice(8).map(({ sql }) => sql),
]

async function upgradedPostgres(): Promise<Database> {
  if (testPostgresUrl === undefined) return upgradedPglite()
  const { client, url, dispose } = await createEmptyPostgres(testPostgresUrl)
  for (const sql of postgresHistory) await client.query(sql)
  const database = openPatientPostgres(url)
  return {
    ...database,
    async close() {
      await database.close()
      await dispose()
    },
  }
}

async function upgradedPglite(): Promise<Database> {
  const [{ PGlite }, { drizzle }] = await Promise.all([
    import('@electric-sql/pglite'),
    import('drizzle-orm/pglite'),
  ])
  const client = new PGlite()
  for (const sql of postgresHistory) await client.exec(sql)
  return wrapPglite(drizzle(client), () => client.close())
}

test.each([
  ['SQLite', upgradedSqlite],
  ['PostgreSQL', upgradedPostgres],
])('what was there before rows became short is all there on %s', async (_, open) => {
  const database = await open()
  const { read, write } = createStore(database, { keys: testKeys })

  expect(await read.otpRequests.find('otp_0')).toMatchObject({
    developerId: 'dev_ada',
    projectId: 'prj_1',
    appId: 'app_gone',
    phone: derivePseudonym(testKeys, 'dev_ada', phone),
  })
  expect(await read.otpRequests.find('otp_1')).toMatchObject({
    appId: 'app_1',
    phone,
    codeHash: hashCode(testKeys, 'otp_1', '123456'),
  })

  const log = await read.events.list('dev_ada', { limit: 9 })
  expect(log.map(({ id, appId }) => [id, appId])).toEqual([
    ['evt_z', null],
    ['evt_y', 'app_1'],
    ['evt_x', 'app_gone'],
  ])
  expect(await read.events.list('dev_ada', { limit: 9, appId: 'app_gone' })).toHaveLength(1)
  expect(await read.events.findSeq('dev_ada', 'evt_y')).toBe(2)

  const inTest = { environment: 'test', limit: 9, now: 9 } as const
  expect((await read.events.list('dev_ada', inTest)).map(({ id }) => id)).toEqual(['evt_x'])
  expect((await read.otpRequests.list({ developerId: 'dev_ada', ...inTest })).map(({ id }) => id)).toEqual([
    'otp_0',
  ])
  const entries = await Promise.all(
    ['otp_0', 'otp_1'].map(async (id) => {
      const request = await read.otpRequests.find(id)
      return request ? createRequestLog({ store: { read } })(request) : []
    }),
  )
  expect(entries.flat()).toMatchObject([
    { id: 'evt_x', type: 'otp.verified', status: 'verified', at: 2, requestId: 'otp_0' },
    { id: 'evt_y', type: 'otp.sent', status: 'pending', at: 3, requestId: 'otp_1' },
  ])

  const [identity] = await write((tx) => tx.oldIdentities.take(9))
  expect(identity).toMatchObject({
    id: 'idn_1',
    developerId: 'dev_ada',
    phone: derivePseudonym(testKeys, 'dev_ada', phone),
    applications: [{ id: 'app_gone', environment: 'test' }],
  })

  const [message] = await read.inbox.list('dev_ada', 0, 9)
  expect(message).toMatchObject({ seq: 2, requestId: 'otp_1', application: { name: '' } })
  expect(await read.webhookDeliveries.find('whk_1', 'dlv_1')).toMatchObject({ eventId: 'evt_y' })

  const owner = { developerId: 'dev_ada', appId: 'app_1', requestId: null, phone: null }
  const entry = { type: 'otp.sent' as const, ...owner, status: null, detail: null, at: 5 }
  await write((tx) => tx.events.append([{ entry }]))
  const [newest] = await read.events.list('dev_ada', { limit: 1 })
  const ids = await loadEventIds(readConnection(database))
  expect(newest).toMatchObject({ seq: 4, id: ids.encode(5, 4) })
  // Ids that were given out before keep their form, and no later number can be probed with it.
  expect(ids.decode('evt_0000000000e008000000000003')).toEqual({ at: 0, seq: 3 })
  expect(ids.decode('evt_0000000000e008000000000004')).toBeUndefined()
  expect(await read.events.findSeq('dev_ada', ids.encode(5, 4))).toBe(4)
  expect(await read.events.findSeq('dev_ada', ids.encode(6, 4))).toBeUndefined()
  // As of a database that an older backup has replaced: the entries to come would have lower numbers.
  expect(await read.events.findSeq('dev_ada', ids.encode(5, 5))).toBeUndefined()
  await database.close()
})
