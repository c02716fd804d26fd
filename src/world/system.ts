import { dns } from 'bun'
import { randomUUID } from 'node:crypto'
import { fdatasync, fdatasyncSync, statfsSync, statSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { setPriority, uptime } from 'node:os'
import tls from 'node:tls'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import type { Timers, World } from './world.ts'

const timers: Timers = {
  setTimeout: (call, ms) => setTimeout(call, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  after(ms, call) {
    const timer = setTimeout(call, ms)
    return () => clearTimeout(timer)
  },
  setInterval: (call, ms) => setInterval(call, ms),
  clearInterval: (timer) => clearInterval(timer as NodeJS.Timeout | undefined),
  setImmediate: (call) => setImmediate(call),
  clearImmediate: (turn) => clearImmediate(turn as NodeJS.Immediate),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
  timeoutSignal: (ms) => AbortSignal.timeout(ms),
}

export type { World } from './world.ts'

/** The world of a server that runs on Bun. */
export const systemWorld: World = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  uptimeSeconds: uptime,
  timers,
  random: (bytes) => crypto.getRandomValues(bytes),
  randomNumber: () => Math.random(),
  uuid: randomUUID,
  connect: ({ tls: secure, ...to }) => (secure ? tls.connect({ ...to, ...secure }) : net.connect(to)),
  request: (url, options) => (/^https:/i.test(url) ? https : http).request(url, options),
  fetch: (url, init) => fetch(url, init),
  listen: (options) => Bun.serve(options),
  // Not by libc, whose look-ups take a thread each: with eight names that never resolve, all others in the process wait ten
  // seconds, those of other developers' webhooks and of providers too.
  resolve: (host) => dns.lookup(host, { backend: 'c-ares' }),
  flush: promisify(fdatasync),
  flushSync: fdatasyncSync,
  hashPassword: (password, cost) => Bun.password.hash(password, cost),
  verifyPassword: (password, hash) => Bun.password.verify(password, hash),
  spawn: (command) => Bun.spawn([...command], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' }),
  fileId(path) {
    const file = statSync(path, { throwIfNoEntry: false })
    return file ? `${file.dev}:${file.ino}` : null
  },
  freeBytes(folder) {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  },
  setPriority,
  startThread: (module, data) => new Worker(module, { workerData: data }),
  onBroken(invariant, detail) {
    throw new Error(`the invariant ${invariant} does not hold: ${detail}`)
  },
  onExit(call) {
    process.on('exit', call)
    return () => void process.off('exit', call)
  },
}
