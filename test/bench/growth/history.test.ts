import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { migrateSqlite } from '../../../src/store/sqlite/migrate.ts'
import { connect } from '../../../src/store/sqlite/database.ts'
import { writeHistory } from './history.ts'

const requests = 3000
const now = Date.now()
const dayMs = 24 * 60 * 60 * 1000

const folder = mkdtempSync(join(tmpdir(), 'otpd-test-'))
const path = join(folder, 'otpd.db')
let db: Database
beforeAll(() => {
  db = connect(path, 0)
  migrateSqlite(db, 0)
  db.run(`insert into developers (id, issuer, subject, plan, virtual_phone, status, created_at, updated_at)
          values ('dev_busy', 'bench', 'busy', 'free', '+15005550000', 'active', 0, 0)`)
  db.run(
    `insert into projects (id, developer_id, name, created_at, updated_at) values ('prj_1', 'dev_busy', '', 0, 0)`,
  )
  for (const id of ['app_1', 'app_2', 'app_3']) {
    db.run(
      `insert into applications (id, developer_id, project_id, name, environment, status, otp_ttl_seconds, client_id_salt,
         client_id_hash, client_secret_salt, client_secret_hash, client_secret_preview, api_key_salt, api_key_hash,
         api_key_preview, webhook_secret, created_at, updated_at)
       values (?, 'dev_busy', 'prj_1', '', 'live', 'active', 300, '', '', '', '', '', '', '', ?1, '', 0, 0)`,
      [id],
    )
  }
  db.close()
  writeHistory(path, {
    requests,
    now,
    owner: { developerId: 'dev_busy', applicationIds: ['app_1', 'app_2', 'app_3'] },
    phones: {
      seal: (requestId, phone) => `sealed ${requestId} ${phone}`,
      open: (requestId, sealed) => sealed.replace(`sealed ${requestId} `, ''),
      pseudonym: (_, phone) => `anon_${phone.slice(1)}`,
    },
  })
  db = connect(path, 0)
})
afterAll(() => {
  db.close()
  rmSync(folder, { recursive: true })
})

const shortIdSql = (id: string) => `(select number from short_ids where id = '${id}')`

const queryNumber = (question: string, ...values: (string | number)[]) =>
  Number(db.query<never, (string | number)[]>(question).values(...values)[0]?.[0])

test('each request of a history has a first and a final log entry', () => {
  expect(queryNumber('select count(*) from otp_requests')).toBe(requests)
  expect(queryNumber(`select count(*) from otp_requests where status = 'pending'`)).toBe(0)
  expect(queryNumber(`select count(*) from events where type = 'otp.sent'`)).toBe(requests)
  const isEndedSql = `type in ('otp.verified', 'otp.expired', 'otp.failed', 'otp.canceled')`
  expect(queryNumber(`select count(*) from events where ${isEndedSql}`)).toBe(requests)
  expect(queryNumber('select max(seq) from events')).toBe(
    queryNumber(`select value from counters where name = 'event_seq'`),
  )
})

test('the counters of a history match its requests and identities', () => {
  expect(queryNumber('select sum(requests) from daily_counts')).toBe(requests)
  for (const [name, status] of [
    ['verified', `= 'verified'`],
    ['failed', `in ('failed', 'expired')`],
  ]) {
    expect(queryNumber(`select sum(${name}) from daily_counts`)).toBe(
      queryNumber(`select count(*) from otp_requests where status ${status}`),
    )
  }
  expect(queryNumber('select sum(active) from daily_counts')).toBe(
    queryNumber('select count(*) from identities'),
  )
  expect(queryNumber('select sum(verification_count) from identities')).toBe(
    queryNumber(`select count(*) from otp_requests where status = 'verified'`),
  )
})

test('a history has pseudonyms for the phones older than 30 days, and newer ones sealed for their request', () => {
  const cutoff = now - 30 * dayMs
  const sealedFor = (id: string) => `phone like 'sealed ' || ${id} || ' +1415%'`
  const pseudonymSql = `phone like 'anon_1415%'`
  for (const [table, at, id] of [
    ['otp_requests', 'created_at', 'id'],
    ['events', 'at', 'request_id'],
  ] as const) {
    const count = (condition: string) =>
      queryNumber(`select count(*) from ${table} where ${at} ${condition}`, cutoff)
    expect(count(`< ? and not ${pseudonymSql}`)).toBe(0)
    expect(count(`> ? and not ${sealedFor(id)}`)).toBe(0)
  }
})

test('one developer has a fifth of a history, and one application of that developer has no failures', () => {
  const ownRequests = queryNumber(
    `select count(*) from otp_requests where developer_id = ${shortIdSql('dev_busy')}`,
  )
  expect(ownRequests / requests).toBeGreaterThan(0.15)
  expect(ownRequests / requests).toBeLessThan(0.25)
  expect(
    queryNumber(`select count(*) from otp_requests where app_id = ${shortIdSql('app_2')}`),
  ).toBeGreaterThan(0)
  expect(
    queryNumber(
      `select count(*) from otp_requests where app_id = ${shortIdSql('app_2')} and status <> 'verified'`,
    ),
  ).toBe(0)
})
