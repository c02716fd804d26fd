import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Client } from 'pg'
import type { Database } from '../../src/store/engine/database.ts'
import { createStore } from '../../src/store/store.ts'
import { createReadiness } from '../../src/server/readiness.ts'
import { testClock } from '../helpers/clock.ts'
import { describeEachDatabase, openTestPostgres } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'
import { systemWorld } from '../../src/world/system.ts'

function createProbe(database: Database, node: string) {
  const clock = testClock()
  const store = createStore(database, { keys: testKeys })
  let isDraining = false
  let lacksCertificate = false
  const disk = { isFull: false }
  const states = { isDraining: () => isDraining, lacksCertificate: () => lacksCertificate, disk }
  /** Time-outs of the probes. None ends on its own, so that a busy machine makes no probe late. */
  const timeouts: Array<{ call: () => void; ms: number }> = []
  const timers = {
    ...systemWorld.timers,
    setTimeout(call: () => void, ms: number) {
      timeouts.push({ call, ms })
      return systemWorld.timers.setTimeout(() => {}, 0)
    },
  }
  const probe = createReadiness(store, { clock, node, timers }, states)
  return {
    clock,
    timeouts,
    probe,
    disk,
    drain: () => void (isDraining = true),
    setLacksCertificate: (lacks: boolean) => void (lacksCertificate = lacks),
  }
}

describeEachDatabase('a probe of readiness', (database) => {
  const count = async () => (await database().read.select().from(database().tables.leases)).length

  test('writes a row of its node, at most once a second', async () => {
    const { clock, probe, drain } = createProbe(database(), 'a')
    const { leases } = database().tables
    const until = async () => (await database().read.select().from(leases))[0]?.until ?? 0
    expect(await Promise.all([probe(), probe()])).toEqual(['ready', 'ready'])
    const first = await until()
    while (Date.now() + 15_000 <= first) await new Promise(setImmediate)
    await probe()
    expect(await until()).toBe(first)
    clock.advance(1_000)
    await probe()
    expect(await until()).toBeGreaterThan(first)
    expect(await createProbe(database(), 'b').probe()).toBe('ready')
    expect(await count()).toBe(2)
    drain()
    expect(await probe()).toBe('draining')
  })
})

const url = process.env['OTPD_TEST_POSTGRES_URL']

describe.skipIf(url === undefined)('a probe of readiness on a PostgreSQL server', () => {
  let opened: Awaited<ReturnType<typeof openTestPostgres>>
  let second: Database
  beforeAll(async () => {
    opened = await openTestPostgres(url ?? '')
    second = opened.openNode()
  })
  afterAll(() => opened.dispose())

  test('gives up after a second, starts no second write meanwhile, and holds up no other node', async () => {
    const { clock, probe, timeouts } = createProbe(opened.database, 'a')
    const other = createProbe(second, 'b')
    expect([await probe(), await other.probe()]).toEqual(['ready', 'ready'])
    // Not of the pool: the server ends its transactions after a second without a statement.
    const blocker = new Client(opened.url)
    await blocker.connect()
    await blocker.query('begin')
    await blocker.query(`update leases set owner = 'a' where name = 'node/a'`)
    timeouts.length = 0
    clock.advance(1_000)
    const blocked = probe()
    timeouts[0]?.call()
    expect(await blocked).toBe('database')
    for (let i = 0; i < 5; i++) {
      clock.advance(1_000)
      other.clock.advance(1_000)
      expect([await probe(), await other.probe()]).toEqual(['database', 'ready'])
    }
    // One write waits, and only its first probe waits for it.
    expect(timeouts.map(({ ms }) => ms)).toEqual([1_000])
    await blocker.end()
    while ((await probe()) !== 'ready') {
      clock.advance(1_000)
      await new Promise(setImmediate)
    }
  })

  test('returns when a database takes writes again whose sessions began while it was read-only', async () => {
    const name = new URL(opened.url).pathname.slice(1)
    const admin = new Client(url)
    await admin.connect()
    const { clock, probe } = createProbe(opened.database, 'a')
    const probeNext = () => (clock.advance(1_000), probe())
    const end = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`
    await admin.query(`alter database ${name} set default_transaction_read_only = on`)
    await admin.query(end)
    for (let i = 0; i < 10; i++) expect(await probeNext()).toBe('database')
    await admin.query(`alter database ${name} reset default_transaction_read_only`)
    await admin.end()
    // The probes keep their connection in use, and the pool would keep it for as long.
    while ((await probeNext()) !== 'ready') await new Promise(setImmediate)
  })

  test('needs new pages after a write that found the disk full', async () => {
    const { clock, probe, disk } = createProbe(opened.database, 'a')
    const admin = new Client(opened.url)
    await admin.connect()
    await admin.query(`create function refuse() returns trigger language plpgsql
      as $$ begin raise 'No space left on device' using errcode = '53100'; end $$`)
    await admin.query(`create trigger refuse before insert on leases for each row
      when (length(new.owner) > 8192) execute function refuse()`)
    expect(await probe()).toBe('ready')
    disk.isFull = true
    for (let i = 0; i < 2; i++) {
      clock.advance(1_000)
      expect(await probe()).toBe('disk')
    }
    await admin.query('drop trigger refuse on leases')
    clock.advance(1_000)
    expect([await probe(), disk.isFull]).toEqual(['ready', false])
    const { rows } = await admin.query(`select name from leases where length(owner) > 8192`)
    expect(rows).toEqual([])
    await admin.end()
  })
})
