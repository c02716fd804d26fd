import { createLog, type Log } from '../../src/log/log.ts'
import type { Config } from '../../src/config/config.ts'
import { startServer, type RunningServer } from '../../src/server/start.ts'
import { systemWorld } from '../../src/world/system.ts'
import type { Timer, Turn, World } from '../../src/world/world.ts'
import type { Chance } from './chance.ts'
import type { Disk } from './disk.ts'
import { uuid } from './globals.ts'
import type { Network } from './network.ts'
import type { Scheduler } from './scheduler.ts'

export type DiskFaults = {
  /** Milliseconds that a flush takes, about. */
  flushMs: number
  /** Share of flushes that fail. */
  fails: number
}

/** The machine of the server, besides its files and network. */
export type Machine = Pick<World, 'freeBytes' | 'spawn'>

const plainMachine: Machine = {
  freeBytes: () => 50e9,
  spawn() {
    throw new Error('nothing is spawned')
  },
}

/** A process of the server. */
export type Node = {
  /** Schedules a call, unless the process has ended then; while it is paused, the call waits. */
  after(ms: number, call: () => void): () => void
  isAlive(): boolean
  /** Passes a request to the listener. Rejects if the process ends before it answers. */
  call(request: Request): Promise<Response>
  /** Stops the process for a while, as SIGSTOP does. */
  pause(ms: number): void
  /** Ends it as kill -9 does. */
  kill(): void
  /** Sets the system clock. */
  stepClock(ms: number): void
  stop(): Promise<void>
  /** Resolves with the error when the server wants to exit. */
  failed: Promise<unknown>
  url: string
}

export type NodeNeeds = {
  config: Config
  scheduler: Scheduler
  chance: Chance
  network: Network
  disk: Disk
  diskFaults(): DiskFaults
  /** Called when a flush has failed. */
  onFlushFailed(): void
  addresses: ReadonlyMap<string, string>
  machine?: Machine | undefined
  onLog(line: string): void
  onBroken(invariant: string, detail: string): void
}

/** Starts the whole server in a process of the simulated world. @throws the error of the start */
export async function startNode(needs: NodeNeeds): Promise<Node> {
  const { scheduler, chance, network, disk, machine = plainMachine } = needs
  const bootedAt = scheduler.now() - 60_000
  let isAlive = true
  let pausedUntil = 0
  let clockStepMs = 0
  let handler: ((request: Request, server: unknown) => Response | Promise<Response>) | undefined
  const ended = Promise.withResolvers<never>()
  ended.promise.catch(() => {})

  function after(ms: number, call: () => void): () => void {
    let cancel = () => {}
    const run = () => {
      if (!isAlive) return
      if (scheduler.now() < pausedUntil) cancel = scheduler.after(pausedUntil - scheduler.now(), run)
      else call()
    }
    cancel = scheduler.after(ms, run)
    return () => cancel()
  }
  const later = <T>(ms: number, value: () => T): Promise<T> =>
    new Promise((resolve, reject) => void after(ms, () => void Promise.try(value).then(resolve, reject)))

  const cancels = new WeakMap<object, () => void>()
  const timer = (cancel: () => void): Timer & Turn => {
    const one: Timer = { unref: () => one }
    cancels.set(one, cancel)
    return one
  }
  const cancelTimer = (one: object | undefined) => {
    if (one) cancels.get(one)?.()
  }
  const timers: World['timers'] = {
    setTimeout: (call, ms) => timer(after(ms, call)),
    clearTimeout: cancelTimer,
    after,
    setInterval(call, ms) {
      let cancel = () => {}
      const tick = () => {
        cancel = after(ms, tick)
        call()
      }
      cancel = after(ms, tick)
      return timer(() => cancel())
    },
    clearInterval: cancelTimer,
    setImmediate: (call) => timer(after(0, call)),
    clearImmediate: cancelTimer,
    sleep: (ms) => later(ms, () => undefined),
    nextTurn: () => later(0, () => undefined),
    timeoutSignal(ms) {
      const controller = new AbortController()
      after(ms, () => controller.abort(new DOMException('timed out', 'TimeoutError')))
      return controller.signal
    },
  }

  const world: World = {
    now: () => Math.floor(scheduler.now() + clockStepMs),
    monotonic: () => scheduler.now() - bootedAt,
    uptimeSeconds: () => Math.floor((scheduler.now() - bootedAt) / 1000),
    timers,
    random: (bytes) => chance.fill(bytes),
    randomNumber: chance.next,
    uuid: () => uuid(chance),
    connect: (options) => network.connect(node, options),
    request: (url, options) => network.request(node, url, options),
    fetch: () => Promise.reject(new Error('nothing is fetched')),
    listen(options) {
      const own = options.fetch as typeof handler
      handler = own
      const server = {
        port: options.port === 0 ? 8080 : options.port,
        // Another listener may have the port by now, with another certificate.
        stop: async () => void (handler = handler === own ? undefined : handler),
        requestIP: () => ({ address: '192.0.2.1', port: 1, family: 'IPv4' }),
        timeout: () => {},
      }
      return server as unknown as Bun.Server<undefined>
    },
    resolve: (host) =>
      later(chance.around(3), () => {
        const address = needs.addresses.get(host)
        if (address === undefined) throw new Error('no such name')
        return [{ address, family: 4 }]
      }),
    async flush(file) {
      const { flushMs, fails } = needs.diskFaults()
      const end = disk.beginFlush(file)
      const hasFailed = chance.happens(fails)
      await later(chance.around(flushMs), () => {
        if (!hasFailed) return end()
        needs.onFlushFailed()
        throw Object.assign(new Error('EIO'), { code: 'EIO' })
      })
    },
    flushSync: (file) => disk.beginFlush(file)(),
    // The database is a file of this machine.
    fileId: systemWorld.fileId,
    // As slow as the real ones, and recognized as the same format.
    hashPassword: (password) => later(chance.around(80), () => fakeHash(password)),
    verifyPassword: (password, hash) => later(chance.around(80), () => fakeHash(password) === hash),
    ...machine,
    setPriority: () => {},
    startThread() {
      const thread = { on: () => thread, unref: () => {}, terminate: () => {} }
      return thread as unknown as ReturnType<World['startThread']>
    },
    onBroken: (invariant, detail) => needs.onBroken(invariant, detail),
    onExit: () => () => {},
  }

  const log: Log = createLog({
    format: 'json',
    level: 'info',
    clock: { now: world.now },
    write: async (lines) => needs.onLog(lines),
  })
  const node: Node = {
    after,
    isAlive: () => isAlive,
    call(request) {
      if (!isAlive || !handler) return Promise.reject(new Error('refused'))
      // Bun's router sets the segments of the path.
      const routed = Object.assign(request, { params: {} })
      return Promise.race([Promise.resolve(handler(routed, {})), ended.promise])
    },
    pause: (ms) => void (pausedUntil = Math.max(pausedUntil, scheduler.now() + ms)),
    kill() {
      isAlive = false
      ended.reject(new Error('reset'))
    },
    stepClock: (ms) => void (clockStepMs += ms),
    stop: () => Promise.race([running.stop(), ended.promise]),
    failed: Promise.resolve(),
    url: '',
  }
  const running: RunningServer = await startServer(needs.config, {
    log,
    world,
    version: '0.0.0-sim',
    command: ['otpd'],
  })
  return Object.assign(node, { failed: running.failed, url: running.url })
}

const fakeHash = (password: string) =>
  `$argon2id$v=19$m=19456,t=2,p=1$c2ltdWxhdGVk$${Buffer.from(Bun.hash(password).toString()).toString('base64url')}`
