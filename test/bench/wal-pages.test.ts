import { afterAll, beforeAll, expect, test } from 'bun:test'
import { FREE_PLAN } from '../../src/domain/model/plans.ts'
import { openTestSqlite } from '../helpers/databases.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../helpers/service.ts'
import { measureWal } from '../helpers/wal.ts'
import { phoneAt } from './service.ts'

/** Pages that a call may append to the write-ahead log, which is its cost on disk. */
const pagesMax = { send: 0.8, verify: 0.8 }

const developers = 200
/** Concurrent calls, which share a transaction. */
const batchCalls = 64
/** Batches of a round, after which the log is emptied, so that it stays below 60 MB. */
const roundBatches = 32
const rounds = 4
/** Earlier rounds only fill the database: in a small one many calls share a page. */
const measuredFrom = rounds / 2
/** So long that the window of the rate limits ends for earlier calls, and their removal is measured too. */
const batchMs = 250

type Owner = { developer: TestDeveloper; application: TestApplication }
type Call = { as: TestApplication; body: object }

let opened: Awaited<ReturnType<typeof openTestSqlite>>
let service: TestService
const owners: Owner[] = []

beforeAll(async () => {
  opened = await openTestSqlite()
  const plans = { free: { ...FREE_PLAN, sendPerMinute: 10_000, verifyPerMinute: 10_000 } }
  service = await createTestService({ database: opened.database, plans })
  for (let index = 0; index < developers; index++) {
    const developer = await service.createDeveloper()
    owners.push({ developer, application: await service.createApplication(developer) })
  }
})
afterAll(async () => {
  await service.dispose()
  await opened.dispose()
})

function listSends(): Call[] {
  const sends: Call[] = []
  while (sends.length < rounds * roundBatches * batchCalls) {
    for (const { application } of owners)
      sends.push({ as: application, body: { phone: phoneAt(sends.length) } })
  }
  return sends
}

/** Lists a verification of each code, in the order of the sends. */
async function listVerifications(): Promise<Call[]> {
  type InboxItem = { requestId: string; code: string }
  const calls: (Call & { requestId: string })[] = []
  for (const { developer, application } of owners) {
    const inbox = await service.request<InboxItem[]>('GET', '/v1/inbox?limit=200', { as: developer })
    for (const { requestId, code } of inbox.data)
      calls.push({ as: application, requestId, body: { requestId, code } })
  }
  // Ids begin with their time.
  return calls.toSorted((a, b) => (a.requestId < b.requestId ? -1 : 1))
}

/** Makes calls in batches. @returns the pages of a call, in the measured rounds */
async function countPages(path: string, calls: readonly Call[]): Promise<number> {
  let pages = 0
  for (let round = 0; round < rounds; round++) {
    const growth = await measureWal(opened, async () => {
      for (let batch = round * roundBatches; batch < (round + 1) * roundBatches; batch++) {
        const batchOf = calls.slice(batch * batchCalls, (batch + 1) * batchCalls)
        const responses = await Promise.all(batchOf.map((call) => service.request('POST', path, call)))
        expect(responses.filter(({ status }) => status > 299)).toEqual([])
        service.clock.advance(batchMs)
      }
    })
    // A batch is one commit; the lists are moved to their chunks in commits of their own.
    expect(growth.commits).toBeGreaterThanOrEqual(roundBatches)
    if (round >= measuredFrom) pages += growth.pages
  }
  return pages / ((rounds - measuredFrom) * roundBatches * batchCalls)
}

test('a call appends few pages to the write-ahead log', async () => {
  const send = await countPages('/v1/otp/send', listSends())
  const verify = await countPages('/v1/otp/verify', await listVerifications())
  process.stderr.write(`pages of a send: ${send.toFixed(2)}, of a verification: ${verify.toFixed(2)}\n`)
  expect(send).toBeLessThanOrEqual(pagesMax.send)
  expect(verify).toBeLessThanOrEqual(pagesMax.verify)
})
