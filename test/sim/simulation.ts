import { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig, type Config } from '../../src/config/config.ts'
import { createDatabase } from '../../src/store/data-dir/create-database.ts'
import { dataFiles } from '../../src/store/data-dir/data-dir.ts'
import { createChance, type Chance } from './chance.ts'
import { createClient, type Outcome } from './client.ts'
import { openDisk, type Disk } from './disk.ts'
import { createModel, type Violation } from './model.ts'
import { createNetwork, noFaults } from './network.ts'
import { startNode, type DiskFaults, type Machine, type Node } from './node.ts'
import { createReceiver, createSimulatedProvider, type ReceivedEvent } from './peers.ts'
import type { Plan } from './plan.ts'
import { createScheduler, type Scheduler } from './scheduler.ts'
import { adminEmail, adminPassword, createShop, receiverHost, type Shop } from './shop.ts'
import { replaceGlobals } from './globals.ts'
import { createLogReader, type LogReader } from './log-reader.ts'

const usualStart = Date.UTC(2026, 0, 5, 9)
const calmDisk: DiskFaults = { flushMs: 1, fails: 0 }
export const limits = { sendPerMinute: 30, verifyPerMinute: 60 }

export type Simulation = Awaited<ReturnType<typeof openSimulation>>

/** The scheduler and the dice of the simulation that runs: for libraries, which use globals. */
export const current: { scheduler: Scheduler; libraries: Chance } = {
  scheduler: createScheduler(usualStart),
  libraries: createChance(0, 'libraries'),
}

let isReplaced = false

/** Folder on a file system in memory. */
export const makeFolder = () => mkdtempSync('/dev/shm/otpd-sim-')

export type SimulationOptions = {
  onTrace?: (line: string) => void
  startAt?: number
  /** Changes the configuration of each process. */
  configure?: (config: Config) => Config
  /** Adds to the database before the first start. */
  fillDatabase?: (connection: Database) => void
  machine?: Machine
}

/** Starts a server with its world: peers, disk, callers, and the rules that watch it. */
export async function openSimulation(plan: Plan, options: SimulationOptions = {}) {
  const { startAt = usualStart, configure = (config) => config } = options
  if (!isReplaced)
    replaceGlobals(
      () => current.scheduler,
      () => current.libraries,
    )
  isReplaced = true
  const scheduler = createScheduler(startAt)
  current.scheduler = scheduler
  current.libraries = createChance(plan.seed, 'libraries')
  const chanceOf = (part: string) => createChance(plan.seed, part)
  const hash = createHash('sha256')
  const trace = (text: string) => {
    // The folder has a random name.
    const line = `${(scheduler.now() - startAt).toFixed(3)} ${text.replaceAll(root, '/data')}\n`
    hash.update(line)
    options.onTrace?.(line)
  }
  const violations: Violation[] = []
  const onViolation = (one: Violation) => {
    trace(`VIOLATION ${one.rule}: ${one.detail}`)
    violations.push(one)
    // A loop that never ends leaves no other chance.
    if (violations.length > 1_000) throw new Error(`${one.rule}: ${one.detail}`)
  }

  const network = createNetwork(scheduler, chanceOf('network'))
  const model = createModel(limits, onViolation)
  const providers = ['main', 'spare'].map((name) =>
    createSimulatedProvider(name, chanceOf(name), (message) => {
      trace(`message ${message.requestId} ${message.messageId}`)
      model.onMessage(message)
    }),
  )
  for (const [index, { peer }] of providers.entries())
    network.addPeer(`${['main', 'spare'][index]}.sms.example`, peer)
  const events: ReceivedEvent[] = []
  const receiver = createReceiver(chanceOf('receiver'), (event) => {
    trace(`event ${event.id} ${event.type}`)
    events.push(event)
  })
  network.addPeer(receiverHost, receiver.peer)

  const root = makeFolder()
  const logLines: string[] = []
  let generation = 0
  let brokenGeneration = -1
  let hasPowerFailed = false
  let diskFaults = calmDisk
  let lost = 0
  let disk: Disk
  let node: Node | undefined
  let restarting: Promise<void> | undefined
  let restarts = 0
  const folderOf = (index: number) => join(root, String(index))

  async function start(): Promise<void> {
    const number = generation
    const folder = folderOf(number)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    disk = openDisk(folder)
    const logOf = (line: string) => {
      logLines.push(line)
      // After a disk fault every write fails, until the process has ended.
      if (brokenGeneration === number) return
      // A power cut may leave a hole in what was not flushed, which looks like damage.
      if (hasPowerFailed && /the write-ahead log was damaged/.test(line)) return
      if (/unexpected error|a periodic task failed|failed unexpectedly|fail open|damaged/.test(line))
        onViolation({ rule: 'no unexpected error', detail: line.trim().slice(0, 600) })
    }
    const started = await startNode({
      config: configure(makeConfig(folder, startAt)),
      scheduler,
      chance: chanceOf(`node ${generation}`),
      network,
      disk,
      diskFaults: () => diskFaults,
      onFlushFailed: () => void (brokenGeneration = number),
      addresses: new Map([[receiverHost, '93.184.216.34']]),
      machine: options.machine,
      onLog: logOf,
      onBroken: (invariant, detail) => onViolation({ rule: `invariant ${invariant}`, detail }),
    })
    node = started
    trace(`started ${generation}`)
    void started.failed.then(() => {
      trace('the server wants to exit')
      return node === started ? restart('kill') : undefined
    })
  }

  /** Ends the process, and starts the next one on what it left. */
  function restart(cause: 'kill' | 'power-cut' | 'stop'): Promise<void> {
    restarting ??= (async () => {
      const ending = node
      node = undefined
      trace(`${cause} ${generation}`)
      hasPowerFailed ||= cause === 'power-cut'
      if (cause === 'stop') await ending?.stop()
      ending?.kill()
      restarts++
      const next = folderOf(generation + 1)
      disk.copyTo(next, cause === 'power-cut' ? cause : 'kill', chanceOf(`cut ${generation}`))
      rmSync(folderOf(generation), { recursive: true, force: true })
      generation++
      diskFaults = { ...diskFaults, fails: 0 }
      await new Promise<void>((resolve) => void scheduler.after(1_500, resolve))
      await start().catch(async (error: unknown) => {
        if (diskFaults.fails === 0) throw error
        // The disk failed during the start, too. A supervisor starts it again.
        diskFaults = calmDisk
        await start()
      })
    })()
      .catch((error: unknown) => onViolation({ rule: 'the server starts again', detail: String(error) }))
      .finally(() => (restarting = undefined))
    return restarting
  }

  createFirstDatabase(folderOf(0), startAt, options.fillDatabase)
  const client = createClient({
    scheduler,
    chance: chanceOf('client'),
    node: () => node,
    lost: () => lost,
    trace,
  })
  const chance = chanceOf('callers')
  await runWhile(scheduler, start())
  const shop: Shop = await runWhile(scheduler, createShop(client))
  const log: LogReader = createLogReader({ scheduler, node: () => node, shop, onViolation, trace })

  return {
    scheduler,
    startAt,
    chance,
    client,
    model,
    shop,
    log,
    network,
    providers,
    receiver,
    events,
    logLines,
    violations,
    trace,
    onViolation,
    restart,
    restarts: () => restarts,
    whenStarted: async () => restarting,
    node: () => node,
    folder: () => folderOf(generation),
    setDiskFaults: (faults: DiskFaults) => void (diskFaults = faults),
    setLost: (share: number) => void (lost = share),
    endFaults() {
      network.setFaults(noFaults)
      for (const provider of providers) provider.setFault('none')
      receiver.setFailing(false)
      diskFaults = calmDisk
      lost = 0
    },
    phone: (index: number) => `+1415555${String(2_000 + index)}`,
    traceHash: () => hash.copy().digest('hex'),
    close() {
      node?.kill()
      scheduler.end()
      rmSync(root, { recursive: true, force: true })
    },
  }
}

const masterKey = Buffer.from(Array.from({ length: 32 }, (_, index) => index * 7 + 1))

/** Creates the database. A migration takes a key from the dice of SQLite, which have no seed. */
function createFirstDatabase(
  folder: string,
  startAt: number,
  fill: SimulationOptions['fillDatabase'] = () => {},
): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  createDatabase(folder, { configured: masterKey, isForced: false, now: startAt })
  const connection = new Database(dataFiles(folder).database)
  const key = current.libraries.fill(Buffer.alloc(32)).toString('hex')
  connection.run(`update meta set value = ? where name = 'event_id_key'`, [key])
  fill(connection)
  connection.close()
}

/** Runs the simulation until a promise settles. */
export async function runWhile<T>(scheduler: Scheduler, work: Promise<T>): Promise<T> {
  const state = { isDone: false }
  const done = work.finally(() => (state.isDone = true))
  done.catch(() => {})
  const deadline = scheduler.now() + 24 * 3_600_000
  while (!state.isDone && scheduler.now() < deadline) await scheduler.runUntil(scheduler.now() + 100)
  if (!state.isDone) throw new Error('the simulated work does not end')
  return done
}

export const isAnswered = ({ answer }: Outcome) => answer !== undefined

function makeConfig(dataDir: string, startAt: number): Config {
  const files = new Map([
    ['/sim/password', adminPassword],
    ['/sim/key', masterKey.toString('hex')],
    [
      '/sim/otpd.toml',
      `[plans.free]\nsendPerMinute = ${limits.sendPerMinute}\nverifyPerMinute = ${limits.verifyPerMinute}\n`,
    ],
  ])
  const { config, problems } = loadConfig({
    flags: { config: '/sim/otpd.toml' },
    env: {
      HOME: '/sim',
      OTPD_DATA_DIR: dataDir,
      OTPD_ADMIN_EMAIL: adminEmail,
      OTPD_ADMIN_PASSWORD_FILE: '/sim/password',
      OTPD_MASTER_KEY_FILE: '/sim/key',
      OTPD_GUARD_MODE: 'monitor',
      OTPD_PUBLIC_URL: 'https://otpd.sim',
    },
    cwd: '/sim',
    isRoot: false,
    hostName: 'sim',
    now: () => startAt,
    readMode: () => 0o600,
    readFile(path) {
      const text = files.get(path)
      if (text === undefined) throw Object.assign(new Error('none'), { code: 'ENOENT' })
      return new TextEncoder().encode(text)
    },
  })
  if (!config) throw new Error(JSON.stringify(problems))
  const providers = ['main', 'spare'].map((name) => ({
    name,
    kind: 'http',
    values: { url: `https://${name}.sms.example/send`, secret: providerSecret, channels: 'sms' },
  }))
  return { ...config, delivery: { providers, routes: [] } }
}

export const providerSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
