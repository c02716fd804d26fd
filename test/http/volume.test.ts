import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createOtpClient, phone, type OtpClient } from '../helpers/otp-client.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../helpers/service.ts'

// One counter numbers the log entries of all developers. A tenant who learned the number of an own entry twice would
// know how much the whole installation sent in between.

let service: TestService
let otp: OtpClient
let tenant: TestDeveloper
let application: TestApplication

beforeAll(async () => {
  service = await createTestService({ plans: unlimitedPlans })
  otp = createOtpClient(service)
  tenant = await service.createDeveloper()
  application = await service.createApplication(tenant, { environment: 'test' })
  for (let count = 0; count < 3; count++) await otp.sendOrThrow(application, { phone })
})
afterAll(() => service.dispose())

type Entry = { id: string; at: string }
const list = (path: string, as = tenant) => service.request<Entry[]>('GET', path, { as })
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const toBase32 = (number: number, length: number) =>
  Array.from({ length }, (_, n) => alphabet[Math.floor(number / 32 ** (length - 1 - n)) % 32]).join('')

test('ids of log entries and inbox messages hide their number, and agree with each other', async () => {
  const log = await list('/v1/logs')
  const inbox = await list('/v1/inbox')
  expect(inbox.data.map(({ id }) => id).toSorted()).toEqual(log.data.map(({ id }) => id).toSorted())
  for (const { id } of log.data) expect(id).not.toMatch(/e008000000000/)
})

test('no number can be probed with the ids of 0.1', async () => {
  const [entry] = (await list('/v1/logs?limit=1')).data
  const time = toBase32(Date.parse(entry?.at ?? ''), 10)
  for (let seq = 0; seq < 20; seq++) {
    const guess = await list(`/v1/logs?after=evt_${time}e008${toBase32(seq, 12)}`)
    expect([guess.status, guess.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
  }
})

test('cursors have one length, show no position, and work for their list and developer alone', async () => {
  const paths = ['/v1/logs', '/v1/inbox', '/v1/otp']
  const cursors = new Map<string, string>()
  for (const path of paths) cursors.set(path, (await list(`${path}?limit=1`)).pagination.nextCursor ?? '')
  for (const [path, cursor] of cursors) {
    expect(cursor).toHaveLength(123)
    expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toMatch(/otp_|^1:/)
    expect((await list(`${path}?limit=1&cursor=${cursor}`)).status).toBe(200)
    const other = await service.createDeveloper()
    const elsewhere = paths.filter((one) => one !== path).map((one) => list(`${one}?cursor=${cursor}`))
    for (const refused of await Promise.all([...elsewhere, list(`${path}?cursor=${cursor}`, other)])) {
      expect([refused.status, refused.error.reason]).toEqual([400, 'CURSOR_INVALID'])
    }
  }
})

test('no position can be probed with the cursors of 0.1', async () => {
  for (const path of ['/v1/logs', '/v1/inbox']) {
    for (let seq = 1; seq < 20; seq++) {
      const cursor = Buffer.from(`1:${seq}`).toString('base64url')
      expect((await list(`${path}?cursor=${cursor}`)).error.reason).toBe('CURSOR_INVALID')
    }
  }
})
