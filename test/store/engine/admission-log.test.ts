import { Database as SqliteConnection } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { Admission, NewAdmission } from '../../../src/domain/model/rate-limit.ts'
import { createAdmissionLog } from '../../../src/store/engine/admission-log.ts'
import { migrateSqlite, sqliteMigrations } from '../../../src/store/engine/migrate.ts'
import { openTestSqlite, registerShortIds } from '../../helpers/databases.ts'

const start = 1_800_000_000_000
const windowMs = 60_000

describe('the admission log', () => {
  let opened: Awaited<ReturnType<typeof openTestSqlite>>
  beforeEach(async () => {
    opened = await openTestSqlite()
    await registerShortIds(opened.database, 'app_a', 'app_b')
  })
  afterEach(() => opened.dispose())

  const log = () => {
    const { memory } = opened.database
    if (!memory) throw new Error('SQLite keeps admissions in memory')
    return memory.admissions
  }
  const admission = (at: number, subject = 'app_a'): NewAdmission => ({
    subject,
    policy: 'otp-send',
    at,
    seq: 1,
    replacesLater: false,
    expiredUntil: at - windowMs,
  })
  const insert = (at: number, subject?: string) =>
    opened.database.write(async () => log().insert(admission(at, subject)))
  const rows = () => {
    const connection = new SqliteConnection(opened.path)
    const found = connection
      .query<{ at: number; entries: string }, []>('select at, entries from admission_batches order by seq')
      .all()
    connection.close()
    return found
  }

  test('writes one row for the writes of a batch', async () => {
    await Promise.all([insert(start), insert(start + 1, 'app_b'), insert(start + 5)])
    const [a, b] = [opened.database.shortId('app_a'), opened.database.shortId('app_b')].map(Number)
    const entries = [start + 5, (a ?? 0) * 4, -5, (b ?? 0) * 4, -4, (a ?? 0) * 4, 0]
    expect(rows()).toEqual([{ at: start + 5, entries: JSON.stringify(entries) }])
  })

  test('takes back what a failed job admitted, and neither runs nor undoes the others again', async () => {
    let runs = 0
    const neighbour = () =>
      opened.database.write(async () => {
        runs++
        log().insert(admission(start, 'app_b'))
      })
    const failing = opened.database.write(async () => {
      log().insert(admission(start))
      expect(log().uncommitted.newest('app_a', 'otp-send', start)).toEqual({ at: start, seq: 1 })
      throw new Error('undone')
    })
    await Promise.allSettled([neighbour(), failing, neighbour()])
    expect(runs).toBe(2)
    expect(log().committed.newest('app_a', 'otp-send', start)).toBeUndefined()
    expect(log().committed.newest('app_b', 'otp-send', start)?.seq).toBe(2)
  })

  test('writes no row if nothing is forgotten', async () => {
    expect(await opened.database.write(async () => log().forget('app_a'))).toBe(0)
    expect(rows()).toEqual([])
  })

  test('refuses a subject without a short id', () => {
    expect(insert(start, 'app_unknown')).rejects.toThrow('unknown subject')
  })

  test('keeps the rows of one window, also if an earlier clock ran ahead', async () => {
    await insert(start + 86_400_000)
    await opened.database.write(async () => log().clampToNow(start))
    for (let at = start; at < start + 5 * windowMs; at += 500) await insert(at)
    // 120 in the window, and those of the batches between two deletions.
    expect(rows().length).toBeLessThanOrEqual(120 + 32)
    await opened.database.write(async () => log().deleteOldest(start + 6 * windowMs, 1000))
    expect(rows()).toHaveLength(1)
    expect(log().committed.newest('app_a', 'otp-send', start + 5 * windowMs)).toBeUndefined()
  })

  test('keeps counting while the windows of many calls move on', async () => {
    const times: number[] = []
    for (let at = start; at < start + 4 * windowMs; at += 250) {
      await insert(at)
      times.push(at)
      const oldest = log().committed.oldestAfter('app_a', 'otp-send', at - windowMs, 0)
      const newest = log().committed.newest('app_a', 'otp-send', at)
      const seqs = [newest, oldest].map((one: Admission | undefined) => one?.seq ?? 0)
      const counted = (seqs[0] ?? 0) - (seqs[1] ?? 0) + 1
      expect(counted).toBe(times.filter((time) => time > at - windowMs).length)
    }
  })
})

test('an upgrade keeps the admissions of the last minute', () => {
  const connection = new SqliteConnection(':memory:')
  const index = sqliteMigrations.findIndex(({ name }) => name.endsWith('admission_log'))
  migrateSqlite(connection, 0, sqliteMigrations.slice(0, index))
  connection.run("insert into short_ids (id) values ('app_a'), ('dev_b')")
  const now = Date.now()
  const insert = connection.prepare(
    'insert into rate_admissions (subject, policy, at, seq) values (?, ?, ?, ?)',
  )
  const admissions: [string, string, number][] = [
    ['app_a', 'otp-send', now - 90_000],
    ['app_a', 'otp-send', now - 30_000],
    ['app_a', 'otp-send', now - 10_000],
    ['app_a', 'otp-verify', now - 20_000],
    ['dev_b', 'webhook-test', now - 15_000],
    ['app_gone', 'otp-send', now - 15_000],
  ]
  for (const [seq, values] of admissions.entries()) insert.run(...values, seq)
  insert.finalize()
  migrateSqlite(connection, 0)
  const read = connection.query<{ number: number }, [string]>('select number from short_ids where id = ?')
  const log = createAdmissionLog(connection, (subject) => read.get(subject)?.number ?? 0)
  const find = (subject: string, policy: 'otp-send' | 'otp-verify' | 'webhook-test') => [
    log.committed.oldestAfter(subject, policy, 0, 0)?.at,
    log.committed.newest(subject, policy, now)?.at,
  ]
  expect(find('app_a', 'otp-send')).toEqual([now - 30_000, now - 10_000])
  expect(find('app_a', 'otp-verify')).toEqual([now - 20_000, now - 20_000])
  expect(find('dev_b', 'webhook-test')).toEqual([now - 15_000, now - 15_000])
  connection.close()
})
