import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eq, getTableColumns, getTableName, sql } from 'drizzle-orm'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { connect } from '../../../src/store/sqlite/database.ts'
import { describeEachDatabase, openTestSqlite } from '../../helpers/databases.ts'
import { testWorld } from '../../helpers/world.ts'

describeEachDatabase('a write', (database) => {
  const insert = (name: string) =>
    database().write(async (tx) => {
      await tx.insert(database().tables.meta).values({ name, value: '1' })
    })
  const read = (name: string) =>
    database().read.select().from(database().tables.meta).where(eq(database().tables.meta.name, name))

  test('that throws is rolled back, and the other writes of its batch are not', async () => {
    const { meta } = database().tables
    const failing = database().write(async (tx) => {
      await tx.insert(meta).values({ name: 'lost', value: '1' })
      throw new ServiceError('CONFLICT', 'no')
    })
    const [failedInsert, keptInsert] = await Promise.allSettled([failing, insert('kept')])
    expect(failedInsert.status).toBe('rejected')
    expect(keptInsert.status).toBe('fulfilled')
    expect(await read('lost')).toEqual([])
    expect(await read('kept')).toHaveLength(1)
  })

  test('that violates a constraint reports the code and not the values', async () => {
    await insert('secret-name')
    const retriedInsert = insert('secret-name')
    expect(retriedInsert).rejects.toMatchObject({ name: 'StoreError' })
    await retriedInsert.catch((error: unknown) => expect(String(error)).not.toContain('secret-name'))
  })

  test('with a guarded statement succeeds for exactly five of 64 concurrent callers', async () => {
    const { counters } = database().tables
    await database().write(async (tx) => {
      await tx.insert(counters).values({ name: 'raced', value: 0 })
    })
    const race = Array.from({ length: 64 }, () =>
      database().write(async (tx) => {
        const passed = await tx
          .update(counters)
          .set({ value: sql`${counters.value} + 1` })
          .where(sql`${counters.name} = 'raced' and ${counters.value} < 5`)
          .returning()
        return passed.length === 1
      }),
    )
    const passed = await Promise.all(race)
    expect(passed.filter(Boolean)).toHaveLength(5)
  })
})

describe('group commit', () => {
  let opened: Awaited<ReturnType<typeof openTestSqlite>>
  let elapsedMs = 0
  beforeAll(async () => {
    opened = await openTestSqlite({
      world: { ...testWorld, monotonic: () => testWorld.monotonic() + elapsedMs },
    })
  })
  afterAll(() => opened.dispose())

  const put = (name: string) =>
    opened.database.write(async (tx) => {
      await tx.insert(opened.database.tables.meta).values({ name, value: '1' })
    })

  test('puts concurrent writes into one transaction', async () => {
    const watcher = connect(opened.path, 0)
    const dataVersion = () =>
      watcher.query<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version ?? 0
    const before = dataVersion()
    await put('alone')
    const versionBefore = dataVersion()
    await Promise.all(Array.from({ length: 100 }, (_, i) => put(`together-${i}`)))
    const together = dataVersion()
    expect(versionBefore).toBe(before + 1)
    expect(together).toBe(versionBefore + 1)
    watcher.close()
  })

  test('ends a batch within one turn of the event loop', async () => {
    let turns = 0
    let running = true
    const count = () => {
      turns++
      if (running) setImmediate(count)
    }
    const seen: number[] = []
    const body = (name: string) =>
      opened.database.write(async (tx) => {
        seen.push(turns)
        await tx.insert(opened.database.tables.meta).values({ name, value: '1' })
        await tx.select().from(opened.database.tables.meta)
        seen.push(turns)
      })
    setImmediate(count)
    await Promise.all(Array.from({ length: 50 }, (_, i) => body(`turn-${i}`)))
    running = false
    expect(new Set(seen).size).toBe(1)
  })

  test.each([
    ['before it wrote', 'does not affect the other writes', 2],
    // The write after the failed one had not run yet.
    ['after it wrote', 'is rolled back alone, and the write before it is retried', 3],
  ])('a body that fails %s %s', async (when, _, neighboursRun) => {
    const { meta } = opened.database.tables
    let runs = 0
    const insertNeighbour = (name: string) =>
      opened.database.write(async (tx) => {
        runs++
        await tx.insert(meta).values({ name: `${name} of one that fails ${when}`, value: '1' })
      })
    const failing = () =>
      opened.database.write(async (tx) => {
        if (when === 'after it wrote') await tx.insert(meta).values({ name: 'lost', value: '1' })
        throw new ServiceError('CONFLICT', 'no')
      })
    const outcomes = await Promise.allSettled([
      insertNeighbour('neighbour'),
      failing(),
      insertNeighbour('other'),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    const names = (await opened.database.read.select({ name: meta.name }).from(meta)).map(({ name }) => name)
    expect(names).toContain(`neighbour of one that fails ${when}`)
    expect(names).toContain(`other of one that fails ${when}`)
    expect(names).not.toContain('lost')
    expect(runs).toBe(neighboursRun)
  })

  test('rejects a body that awaits something else, and rolls it back', async () => {
    const { meta } = opened.database.tables
    const slow = opened.database.write(async (tx) => {
      await tx.insert(meta).values({ name: 'slow', value: '1' })
      await new Promise((resolve) => setTimeout(resolve, 5))
    })
    expect(slow).rejects.toThrow('something other than its transaction')
    await slow.catch(() => undefined)
    const rows = await opened.database.read.select().from(meta).where(eq(meta.name, 'slow'))
    expect(rows).toEqual([])
    await put('after-slow')
  })

  test("waits for another process's lock without blocking the event loop", async () => {
    const other = connect(opened.path, 0)
    other.run('BEGIN IMMEDIATE')
    const waiting = put('waited')
    let ticks = 0
    await new Promise<void>((resolve) => {
      const tick = () => (++ticks < 20 ? setTimeout(tick, 1) : resolve())
      tick()
    })
    other.run('ROLLBACK')
    other.close()
    await waiting
    expect(ticks).toBe(20)
  })

  test('rejects writes with UNAVAILABLE that have waited three seconds for the lock', async () => {
    const other = connect(opened.path, 0)
    other.run('BEGIN IMMEDIATE')
    const refused = put('refused').catch((error: unknown) => error)
    elapsedMs += 2_500
    expect(await Promise.race([refused, Bun.sleep(50)])).toBeUndefined()
    elapsedMs += 500
    expect(await refused).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 1 })
    other.run('ROLLBACK')
    other.close()
    await put('healed')
  })
})

describeEachDatabase('the tables of the code', (database) => {
  test('name only columns that the migrations create', async () => {
    const missing: string[] = []
    for (const table of Object.values(database().tables)) {
      const tableName = getTableName(table)
      for (const { name } of Object.values(getTableColumns(table))) {
        // SQLite reads the quoted name of a missing column as a string, unless it is qualified.
        const column = sql`${sql.identifier(tableName)}.${sql.identifier(name)}`
        const query = database().read.select({ column }).from(table).limit(0)
        await query.then(undefined, () => missing.push(`${tableName}.${name}`))
      }
    }
    expect(missing).toEqual([])
  })
})
