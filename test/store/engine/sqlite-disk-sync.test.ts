import { Database as SqliteConnection } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { sql } from 'drizzle-orm'
import type { QueryExecutor } from '../../../src/store/engine/database.ts'
import type { DiskSync } from '../../../src/store/engine/sqlite-disk-sync.ts'
import { createWriteQueue } from '../../../src/store/engine/sqlite-write-queue.ts'
import { openTestSqlite } from '../../helpers/databases.ts'

const pageBytes = 4_096

test('the log is used again after each checkpoint, although commits go on', async () => {
  await using opened = await openTestSqlite().then((one) => ({ ...one, [Symbol.asyncDispose]: one.dispose }))
  const { database, path } = opened
  const { meta } = database.tables
  let written = 0
  const write = async () => {
    for (let i = 0; i < 1_500; i++) {
      const name = `row ${written++}`
      await database.write(
        async (tx) => void (await tx.insert(meta).values({ name, value: 'x'.repeat(3 * pageBytes) })),
      )
    }
  }
  // Two callers, so that there is hardly a moment without a commit.
  await Promise.all([write(), write()])
  const rows = await database.read
    .select({ count: sql<number>`count(*)` })
    .from(meta)
    .where(sql`${meta.name} like 'row %'`)
  expect(rows).toEqual([{ count: written }])
  // All batches together write some 17,000 pages.
  const logBytes = statSync(`${path}-wal`).size
  expect(logBytes).toBeLessThan(9_000 * pageBytes)
})

/** A disk whose flushes end when the test says so. */
function createSlowDisk() {
  const told: string[] = []
  const flushes: Array<PromiseWithResolvers<void>> = []
  let isDue = false
  const disk: DiskSync = {
    flush() {
      told.push('flush')
      const ended = Promise.withResolvers<void>()
      flushes.push(ended)
      return ended.promise
    },
    isCheckpointDue: () => isDue,
    async makeCheckpoint() {
      told.push('checkpoint')
      isDue = false
    },
  }
  return {
    disk,
    told,
    endFlush: () => flushes.shift()?.resolve(),
    failFlush: (error: Error) => flushes.shift()?.reject(error),
    demandCheckpoint: () => void (isDue = true),
  }
}

describe('while a flush is under way', () => {
  let connection: SqliteConnection
  let slow: ReturnType<typeof createSlowDisk>
  let queue: ReturnType<typeof createWriteQueue>
  let faults: unknown[]
  beforeEach(() => {
    connection = new SqliteConnection(':memory:')
    connection.run('create table rows (name text)')
    slow = createSlowDisk()
    faults = []
    // The bodies use the connection themselves.
    queue = createWriteQueue(connection, undefined as unknown as QueryExecutor, {
      disk: slow.disk,
      onDiskFault: (error) => faults.push(error),
    })
  })
  afterEach(() => connection.close())

  const insert = (name: string) =>
    queue.write(async () => {
      connection.run('insert into rows values (?)', [name])
      slow.told.push(name)
    })
  const turns = async () => {
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  }

  test('no caller learns of its commit, and the next batch is committed and flushed after it', async () => {
    const ended: string[] = []
    const first = insert('a').then(() => ended.push('a'))
    await turns()
    const second = insert('b').then(() => ended.push('b'))
    await turns()
    expect(slow.told).toEqual(['a', 'flush', 'b'])
    expect(ended).toEqual([])
    slow.endFlush()
    await first
    await turns()
    // That flush began before b was committed.
    expect(slow.told).toEqual(['a', 'flush', 'b', 'flush'])
    expect(ended).toEqual(['a'])
    slow.endFlush()
    await second
  })

  test('no notice of its calls is given', async () => {
    const call = queue.group<string>({
      repeat: () => {},
      load: async () => {},
      decide: (_, name) => connection.run('insert into rows values (?)', [name]),
      hasChanges: () => true,
      write: async () => {},
      end: (_, isCommitted) => () => slow.told.push(isCommitted ? 'notice' : 'notice of a loss'),
    })
    const calls = [call('a'), call('b')]
    await turns()
    expect(slow.told).toEqual(['flush'])
    slow.endFlush()
    await Promise.all(calls)
    expect(slow.told).toEqual(['flush', 'notice'])
    const lost = call('c')
    await turns()
    slow.failFlush(new Error('EIO'))
    await expect(lost).rejects.toThrow('EIO')
    expect(slow.told).toEqual(['flush', 'notice', 'flush'])
  })

  test('what was committed since it began is durable only after the next one', async () => {
    const steps: string[] = []
    await queue.whenDurable()
    const written = [insert('a')]
    await turns()
    written.push(insert('b'))
    await turns()
    const durable = queue.whenDurable().then(() => steps.push('durable'))
    slow.endFlush()
    await turns()
    expect(steps).toEqual([])
    slow.endFlush()
    await durable
    await Promise.all(written)
  })

  test('that fails, nothing is durable from then on', async () => {
    const written = insert('a').catch(() => 'refused')
    await turns()
    const durable = queue.whenDurable()
    const error = Object.assign(new Error('EIO'), { code: 'SQLITE_IOERR_FSYNC' })
    slow.failFlush(error)
    expect(durable).rejects.toBe(error)
    expect(await written).toBe('refused')
    expect(queue.whenDurable()).rejects.toBe(error)
  })

  test('ten thousand writes may wait, and one more is refused', async () => {
    const writes = Array.from({ length: 10_001 }, (_, index) => insert(`row ${index}`).catch(() => 'refused'))
    const first = await Promise.race([writes.at(-1), turns().then(() => 'waits')])
    expect(first).toBe('refused')
    slow.failFlush(new Error('EIO'))
    await turns()
    slow.failFlush(new Error('EIO'))
    await Promise.all(writes)
  })

  test('a body that waits for anything but its transaction is refused', async () => {
    const written = queue.write(() => new Promise(setImmediate))
    await expect(written).rejects.toThrow()
    expect(slow.told).toEqual([])
  })

  test('drain waits for it', async () => {
    let isDrained = false
    const written = insert('a')
    await turns()
    const drained = queue.drain().then(() => (isDrained = true))
    await turns()
    expect(isDrained).toBe(false)
    slow.endFlush()
    await Promise.all([written, drained])
  })

  test('a checkpoint waits for it, and the next batch for the checkpoint', async () => {
    slow.demandCheckpoint()
    const first = insert('a')
    await turns()
    const second = insert('b')
    await turns()
    expect(slow.told).toEqual(['a', 'flush'])
    slow.endFlush()
    await first
    await turns()
    expect(slow.told).toEqual(['a', 'flush', 'checkpoint', 'b', 'flush'])
    slow.endFlush()
    await second
  })

  test('that fails, all whose commits it may have lost are refused, and so are later writes', async () => {
    const statuses = Promise.allSettled([insert('a'), turns().then(() => insert('b'))])
    await turns()
    await turns()
    slow.demandCheckpoint()
    slow.failFlush(Object.assign(new Error('EIO'), { code: 'SQLITE_IOERR_FSYNC' }))
    expect((await statuses).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(insert('c')).rejects.toThrow('Try again')
    expect(faults).toHaveLength(1)
    expect(slow.told).toEqual(['a', 'flush', 'b'])
  })

  test('of a disk that hangs, not more than a thousand calls are committed', async () => {
    const statuses = Promise.allSettled(Array.from({ length: 3_000 }, (_, i) => insert(`row ${i}`)))
    await turns()
    await turns()
    const rows = () => connection.query<{ count: number }, []>('select count(*) as count from rows').get()
    expect(rows()?.count).toBeWithin(1_024, 1_024 + 257)
    while (rows()?.count !== 3_000) {
      slow.endFlush()
      await turns()
    }
    slow.endFlush()
    await turns()
    slow.endFlush()
    expect((await statuses).every(({ status }) => status === 'fulfilled')).toBe(true)
  })
})
