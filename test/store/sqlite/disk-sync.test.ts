import { Database as SqliteConnection } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { sql } from 'drizzle-orm'
import type { QueryExecutor } from '../../../src/store/engine/database.ts'
import type { DiskSync } from '../../../src/store/sqlite/disk-sync.ts'
import { createWriteQueue } from '../../../src/store/sqlite/write-queue.ts'
import { openTestFile, openTestSqlite } from '../../helpers/databases.ts'
import { testWorld } from '../../helpers/world.ts'

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

test('the database file is flushed before anything is written: a killed process may have copied pages to it', async () => {
  const first = await openTestSqlite()
  try {
    await first.database.write(async () => {})
    const flushed: Array<{ path: string; logBytes: number }> = []
    const second = openTestFile(first.path, {
      world: {
        ...testWorld,
        flushSync(file) {
          const path = readlinkSync(`/proc/self/fd/${file}`)
          flushed.push({ path, logBytes: statSync(`${first.path}-wal`).size })
        },
      },
    })
    await second.close()
    expect(flushed).toEqual([{ path: first.path, logBytes: 0 }])
  } finally {
    await first.dispose()
  }
})

test('a transaction that changes nothing flushes nothing, but waits for the changes that it read', async () => {
  const flushes: Array<PromiseWithResolvers<void>> = []
  const opened = await openTestSqlite({
    world: {
      ...testWorld,
      flush() {
        const ended = Promise.withResolvers<void>()
        flushes.push(ended)
        return ended.promise
      },
    },
  })
  const { database } = opened
  const { meta } = database.tables
  const commits: boolean[] = []
  database.changes?.subscribe((isForeign) => void commits.push(isForeign))
  const read = () =>
    database.write(async (tx) =>
      tx
        .select()
        .from(meta)
        .where(sql`${meta.name} = 'row'`),
    )
  const removed = () =>
    database.write(async (tx) => void (await tx.delete(meta).where(sql`${meta.name} = 'none'`)))
  expect(await read()).toEqual([])
  // The first transaction takes all that is there for other processes' commits.
  commits.length = 0
  await removed()
  expect([flushes.length, commits]).toEqual([0, []])

  let isAcknowledged = false
  const written = database.write(
    async (tx) => void (await tx.insert(meta).values({ name: 'row', value: '' })),
  )
  await Bun.sleep(5)
  const seen = read().then((rows) => {
    isAcknowledged = true
    return rows
  })
  await Bun.sleep(20)
  expect([isAcknowledged, commits]).toEqual([false, [false]])
  flushes[0]?.resolve()
  await written
  await Bun.sleep(5)
  flushes[1]?.resolve()
  expect(await seen).toMatchObject([{ name: 'row' }])
  for (const { resolve } of flushes) resolve()
  const disposed = opened.dispose()
  await Bun.sleep(5)
  for (const { resolve } of flushes) resolve()
  await disposed
})

test('a write is acknowledged when the log is flushed, not before', async () => {
  const flushes: Array<{ file: string; ended: PromiseWithResolvers<void> }> = []
  const opened = await openTestSqlite({
    world: {
      ...testWorld,
      flush(file) {
        const ended = Promise.withResolvers<void>()
        flushes.push({ file: readlinkSync(`/proc/self/fd/${file}`), ended })
        return ended.promise
      },
    },
  })
  const { meta } = opened.database.tables
  let isAcknowledged = false
  const written = opened.database
    .write(async (tx) => void (await tx.insert(meta).values({ name: 'row', value: '' })))
    .then(() => (isAcknowledged = true))
  await Bun.sleep(20)
  expect(flushes).toMatchObject([{ file: `${opened.path}-wal` }])
  expect(isAcknowledged).toBe(false)
  flushes[0]?.ended.resolve()
  await written
  await opened.dispose()
})

describe('a checkpoint', () => {
  /** Opens a database whose file is flushed as the test says, and makes so many commits that a checkpoint begins. */
  async function beginCheckpoint(flushFile: () => Promise<void>) {
    const faults: unknown[] = []
    const begun = Promise.withResolvers<string>()
    /** Changes whenever the log is written from its beginning again. */
    const logSalt = () => readFileSync(`${opened.path}-wal`).subarray(16, 24).toString('hex')
    const opened = await openTestSqlite({
      onDiskFault: (error) => faults.push(error),
      world: {
        ...testWorld,
        flush(file) {
          if (!readlinkSync(`/proc/self/fd/${file}`).endsWith('.db')) return Promise.resolve()
          begun.resolve(logSalt())
          return flushFile()
        },
        // The process goes on, other than a server after a fault.
        onExit: () => () => {},
      },
    })
    const { meta } = opened.database.tables
    let rows = 0
    const write = async (count: number) => {
      for (let i = 0; i < count; i++)
        await opened.database.write(
          async (tx) => void (await tx.insert(meta).values({ name: `row ${rows++}`, value: '' })),
        )
    }
    await write(500)
    return { opened, faults, write, before: await begun.promise, logSalt }
  }

  test('keeps the log as it is until the file is flushed, and writes it from the beginning afterwards', async () => {
    const flushed = Promise.withResolvers<void>()
    const { opened, write, before, logSalt } = await beginCheckpoint(() => flushed.promise)
    await write(20)
    expect(logSalt()).toBe(before)
    flushed.resolve()
    await write(1_000)
    expect(logSalt()).not.toBe(before)
    await opened.dispose()
  })

  test('whose file cannot be flushed reports the fault, and keeps the log for the next start', async () => {
    const failed = Object.assign(new Error('EIO'), { code: 'EIO' })
    const { opened, faults, write, before, logSalt } = await beginCheckpoint(() => Promise.reject(failed))
    await write(1_000)
    expect(faults).toMatchObject([{ code: 'SQLITE_IOERR_FSYNC' }])
    expect(logSalt()).toBe(before)
    rmSync(dirname(opened.path), { recursive: true })
  })
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
    const call = queue.group<string>(() => ({
      prepareAlone: () => {},
      load: async (calls) => new Set(calls),
      decide: (name) => connection.run('insert into rows values (?)', [name]),
      hasChanges: () => true,
      write: async () => {},
      end: (isCommitted) => () => slow.told.push(isCommitted ? 'notice' : 'notice of a loss'),
    }))
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
