import { Database as SqliteConnection } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/config/config.ts'
import { hourMs, minuteMs, secondMs } from '../../src/shared/durations.ts'
import { createChance } from '../sim/chance.ts'
import { openDisk } from '../sim/disk.ts'
import { createNetwork } from '../sim/network.ts'
import { startNode, type Node } from '../sim/node.ts'
import { runWhile } from '../sim/simulation.ts'
import { createScheduler, type Scheduler } from '../sim/scheduler.ts'

// The whole server, on simulated time.

let folder: string
let scheduler: Scheduler
let node: Node
let disk: ReturnType<typeof openDisk>

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-idle-'))
  scheduler = createScheduler(Date.UTC(2026, 0, 5, 9))
  disk = openDisk(join(folder, 'data'))
  const { config } = loadConfig({
    flags: {},
    env: { HOME: folder, OTPD_DATA_DIR: join(folder, 'data') },
    cwd: folder,
    isRoot: false,
    hostName: 'idle',
    now: scheduler.now,
    readMode: () => 0o600,
    readFile: () => {
      throw Object.assign(new Error('none'), { code: 'ENOENT' })
    },
  })
  if (!config) throw new Error('no configuration')
  const starting = startNode({
    config,
    scheduler,
    chance: createChance(1, 'idle'),
    network: createNetwork(scheduler, createChance(1, 'network')),
    disk,
    diskFaults: () => ({ flushMs: 1, fails: 0 }),
    onFlushFailed() {},
    addresses: new Map(),
    onLog() {},
    onBroken(invariant) {
      throw new Error(invariant)
    },
  })
  node = await runWhile(scheduler, starting)
  // The first purge notes its daily scans.
  await scheduler.runUntil(scheduler.now() + 15 * minuteMs)
})
afterAll(() => {
  node.kill()
  rmSync(folder, { recursive: true, force: true })
})

const path = () => join(folder, 'data', 'otpd.db')
const readTimes = () => [statSync(path()).mtimeMs, statSync(`${path()}-wal`).mtimeMs]

test('an idle server writes and flushes nothing', async () => {
  const flushes = disk.flushes()
  const times = readTimes()
  await scheduler.runUntil(scheduler.now() + 3 * hourMs)
  expect([disk.flushes() - flushes, readTimes()]).toEqual([0, times])
})

test('an idle server wakes about once a second', async () => {
  const calls = scheduler.calls()
  await scheduler.runUntil(scheduler.now() + hourMs)
  expect(scheduler.calls() - calls).toBeLessThan(3_600)
})

test('an idle server notices within two seconds what another process commits', async () => {
  const setupToken = join(folder, 'data', 'setup-token')
  expect(existsSync(setupToken)).toBe(true)
  const other = new SqliteConnection(path())
  // As `otpd admin create` does.
  other.run(
    "insert into accounts (developer_id, email, password_hash, created_at, updated_at) values ('dev_1', 'ada@example.com', '', 0, 0)",
  )
  other.close()
  await scheduler.runUntil(scheduler.now() + 2 * secondMs)
  expect(existsSync(setupToken)).toBe(false)
})
