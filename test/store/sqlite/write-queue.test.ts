import { Database as SqliteConnection } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { eq, sql } from 'drizzle-orm'
import type { CallGroup, Database, QueryExecutor } from '../../../src/store/engine/database.ts'
import { describeEachDatabase, openTestSqlite } from '../../helpers/databases.ts'

/** A call that adds a row when the calls are written. */
type Call = { name: string; failsIn?: 'decide' | 'write' }

/** A group whose calls add a row each, all when they are written, and a record of what it was told to do. */
function createGroup(tables: Database['tables']) {
  const told: string[] = []
  let pending: Call[] = []
  const bind = (tx: QueryExecutor): CallGroup<Call> => ({
    prepareAlone: () => {},
    load: async (calls) => new Set(calls),
    decide(call) {
      told.push(`decide ${call.name}`)
      if (call.failsIn === 'decide') throw new Error(`${call.name} cannot be decided`)
      pending.push(call)
      return pending.map(({ name }) => name)
    },
    hasChanges: () => pending.length > 0,
    async write() {
      told.push(`write ${pending.map(({ name }) => name).join(' ')}`)
      for (const { name, failsIn } of pending) {
        await insert(tx, name)
        if (failsIn === 'write') throw new Error(`${name} cannot be written`)
      }
    },
    end(isCommitted) {
      told.push(isCommitted ? 'committed' : 'rolled back')
      pending = []
      return undefined
    },
  })
  const insert = async (tx: QueryExecutor, name: string) =>
    void (await tx.insert(tables.meta).values({ name, value: 'call' }))
  return { bind, told, insert }
}

describe('calls in the write queue', () => {
  let opened: Awaited<ReturnType<typeof openTestSqlite>>
  let group: ReturnType<typeof createGroup>
  let call: (call: Call) => Promise<string[]>
  beforeEach(async () => {
    opened = await openTestSqlite()
    group = createGroup(opened.database.tables)
    const run = opened.database.group(group.bind)
    call = (one) => run<string[]>(one)
  })
  afterEach(() => opened.dispose())

  const body = (name: string, then = () => {}) =>
    opened.database.write(async (tx) => {
      group.told.push(`body ${name}`)
      await group.insert(tx, name)
      then()
    })
  const fail = () => {
    throw new Error('failed after it wrote')
  }
  const names = async () => {
    const { meta } = opened.database.tables
    const rows = await opened.database.read
      .select({ name: meta.name })
      .from(meta)
      .where(eq(meta.value, 'call'))
    return rows.map(({ name }) => name).toSorted()
  }
  const statuses = async (promises: ReadonlyArray<Promise<unknown>>) =>
    (await Promise.allSettled(promises)).map(({ status }) => status === 'fulfilled')

  test('run after the bodies of their batch, each on what those before it decided, and are written once', async () => {
    const results = await Promise.all([call({ name: 'a' }), body('b'), call({ name: 'c' }), body('d')])
    expect(results).toEqual([['a'], undefined, ['a', 'c'], undefined])
    expect(group.told).toEqual(['body b', 'body d', 'decide a', 'decide c', 'write a c', 'committed'])
    expect(await names()).toEqual(['a', 'b', 'c', 'd'])
  })

  test('that cannot be decided fail alone', async () => {
    const settled = statuses([
      call({ name: 'a' }),
      call({ name: 'b', failsIn: 'decide' }),
      call({ name: 'c' }),
    ])
    expect(await settled).toEqual([true, false, true])
    expect(group.told).toEqual(['decide a', 'decide b', 'decide c', 'write a c', 'committed'])
    expect(await names()).toEqual(['a', 'c'])
  })

  test('that cannot be written fail alone: each job runs again in a transaction of its own', async () => {
    const settled = statuses([
      call({ name: 'a' }),
      call({ name: 'b', failsIn: 'write' }),
      body('c'),
      call({ name: 'd' }),
    ])
    // Comes while the others wait to run again, and stays behind them.
    await new Promise(setImmediate)
    const late = call({ name: 'e' })
    expect(await settled).toEqual([true, false, true, true])
    expect(await late).toEqual(['e'])
    const expected = [
      ['body c', 'decide a', 'decide b', 'decide d', 'write a b d', 'rolled back'],
      ['decide a', 'write a', 'committed'],
      ['decide b', 'write b', 'rolled back'],
      ['body c'],
      ['decide d', 'write d', 'committed'],
      ['decide e', 'write e', 'committed'],
    ]
    expect(group.told).toEqual(expected.flat())
    expect(await names()).toEqual(['a', 'c', 'd', 'e'])
  })

  test('run once more, each alone, if a body fails after it wrote', async () => {
    const settled = statuses([call({ name: 'a' }), body('b', fail), body('c'), call({ name: 'd' })])
    expect(await settled).toEqual([true, false, true, true])
    const expected = [
      ['body b', 'rolled back'],
      ['decide a', 'write a', 'committed'],
      ['body b', 'body c'],
      ['decide d', 'write d', 'committed'],
    ]
    expect(group.told).toEqual(expected.flat())
    expect(await names()).toEqual(['a', 'c', 'd'])
  })

  test('fail with their batch if it cannot be committed', async () => {
    const other = new SqliteConnection(opened.path)
    other.run('create table children (parent text references meta (name) deferrable initially deferred)')
    other.run(`create trigger orphan after insert on meta when new.name = 'b'
      begin insert into children values ('missing'); end`)
    other.close()
    expect(await statuses([call({ name: 'a' }), call({ name: 'b' })])).toEqual([false, false])
    expect(group.told.filter((one) => one === 'rolled back' || one === 'committed')).toEqual(['rolled back'])
    expect(await call({ name: 'c' })).toEqual(['c'])
    expect(await names()).toEqual(['c'])
  })

  test('of two groups share a batch, and each is written and ended once', async () => {
    const second = createGroup(opened.database.tables)
    const callSecond = opened.database.group(second.bind)
    await Promise.all([call({ name: 'a' }), callSecond({ name: 'b' }), call({ name: 'c' })])
    expect(group.told).toEqual(['decide a', 'decide c', 'write a c', 'committed'])
    expect(second.told).toEqual(['decide b', 'write b', 'committed'])
  })

  test('share a batch with those that came before them while another one runs', async () => {
    const first = call({ name: 'first' })
    await new Promise(setImmediate)
    const flood = Array.from({ length: 200 }, (_, index) => call({ name: `flood ${index}` }))
    await call({ name: 'late' })
    expect(group.told.filter((one) => one === 'committed')).toHaveLength(2)
    await Promise.all([first, ...flood])
  })

  test('more than a batch holds are ended batch by batch', async () => {
    await Promise.all(Array.from({ length: 600 }, (_, i) => call({ name: `n${i}` })))
    expect(group.told.filter((one) => one.startsWith('write'))).toHaveLength(3)
    expect(group.told.filter((one) => one === 'committed')).toHaveLength(3)
    expect(await names()).toHaveLength(600)
  })
})

describeEachDatabase('a call', (database) => {
  test('that fails in either half leaves nothing, and the others are written', async () => {
    const { meta } = database().tables
    const { bind } = createGroup(database().tables)
    // On PostgreSQL each call has a transaction, and so pending changes, of its own.
    const run = database().postgres
      ? (call: Call) => database().group(createGroup(database().tables).bind)(call)
      : database().group(bind)
    const settled = await Promise.allSettled([
      run({ name: 'a' }),
      run({ name: 'b', failsIn: 'decide' }),
      run({ name: 'c', failsIn: 'write' }),
      run({ name: 'd' }),
    ])
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    const rows = await database().read.select({ name: meta.name }).from(meta).where(eq(meta.value, 'call'))
    expect(rows.map(({ name }) => name).toSorted()).toEqual(['a', 'd'])
  })
})

test('reports a full disk by its code', async () => {
  const codes: string[] = []
  const { database, dispose } = await openTestSqlite({ onUnavailable: (code) => void codes.push(code) })
  const { meta } = database.tables
  try {
    const run = (statement: string) =>
      database.write(async (tx) => {
        // SQLite's executor has `run`; the shared type does not.
        if ('run' in tx && typeof tx.run === 'function') tx.run(sql.raw(statement))
      })
    const fill = (name: string) =>
      database.write(async (tx) => void (await tx.insert(meta).values({ name, value: 'x'.repeat(100_000) })))
    // No page can be added: SQLite never sets it below the number of pages that there are.
    await run('pragma max_page_count = 1')
    expect(await fill('a').catch((error: unknown) => error)).toMatchObject({ code: 'UNAVAILABLE' })
    expect(codes).toEqual(['SQLITE_FULL'])
    await run('pragma max_page_count = 100000')
    await fill('c')
    expect(codes).toHaveLength(1)
  } finally {
    await dispose()
  }
})
