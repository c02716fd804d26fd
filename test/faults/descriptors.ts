import { readdirSync } from 'node:fs'
import type { Socket } from 'bun'
import { logIn } from '../helpers/webhook-client.ts'
import { callApi, send, violationUnless, waitUntil } from './calls.ts'
import type { FaultFamily, Trial } from './family.ts'
import { residentMb } from './misbehaving-server.ts'
import { makeHome, startServerAt } from './server.ts'

const recoversMsMax = 15_000

export const descriptors: FaultFamily = {
  name: 'descriptors',
  description: 'no file descriptors left, and thousands of connections that send half a request',
  counts: { connections: { full: 5_000, short: 1_000 } },
  async run(trial) {
    await exhaust(trial, {
      name: 'few',
      scenario: 'a limit of 200 file descriptors, and 300 half-open connections',
      limit: 200,
      connections: 300,
      expectsHealth: false,
    })
    const connections = trial.count('connections')
    await exhaust(trial, {
      name: 'many',
      scenario: `${connections} half-open connections, each with 8 KB of headers`,
      connections,
      expectsHealth: true,
    })
  },
}

type Exhaustion = {
  name: string
  scenario: string
  limit?: number
  connections: number
  /** True if descriptors are left for other connections. */
  expectsHealth: boolean
}

const partialRequest = `POST /v1/otp/send HTTP/1.1\r\nhost: x\r\nx-filler: ${'a'.repeat(8_000)}\r\nx-more: `

async function exhaust(trial: Trial, { name, scenario, limit, connections, expectsHealth }: Exhaustion) {
  const server = await startServerAt(makeHome(trial, name))
  const openFiles = () => readdirSync(`/proc/${server.pid}/fd`).length
  const app = await (await logIn(server.url)).createApplication()
  for (let i = 0; i < 20; i++) await send(server.url, app)
  if (limit !== undefined) {
    const { exitCode } = Bun.spawnSync(['prlimit', `--pid=${server.pid}`, `--nofile=${limit}:${limit}`])
    if (exitCode !== 0) throw new Error('the limit could not be set')
  }
  const filesBefore = openFiles()
  const memoryBefore = residentMb(server.pid)

  const sockets: Socket[] = []
  const { hostname, port } = new URL(server.url)
  const open = async () => {
    const socket = { open: (one: Socket) => void one.write(partialRequest), data() {}, error() {} }
    const connected = await Bun.connect({ hostname, port: Number(port), socket }).catch(() => undefined)
    if (connected) sockets.push(connected)
  }
  for (let i = 0; i < connections; i += 100) await Promise.all(Array.from({ length: 100 }, open))
  await Bun.sleep(500)
  const filesPeak = openFiles()
  const healthDuring = await callApi('GET', `${server.url}/v1/health`, { timeoutMs: trial.allowMs(3_000) })
  const memoryPeak = residentMb(server.pid)

  // In the full form the clients keep the connections open, and the server has to close them.
  if (trial.short) for (const socket of sockets) socket.terminate()
  const openedAt = performance.now()
  const isRecovered = await waitUntil(
    trial.allowMs(recoversMsMax),
    async () => (await send(server.url, app)).status === 201,
  )
  const recoveredMs = Math.round(performance.now() - openedAt)
  const isFreed = await waitUntil(trial.allowMs(recoversMsMax), () => openFiles() <= filesBefore + 10)
  const exitedEarly = await Promise.race([server.exited, Promise.resolve(null)])
  for (const socket of sockets) socket.end()
  const exitCode = await server.stop()
  trial.report({
    scenario,
    guarantee: `sends work again within 15 s${trial.short ? ' after they close' : ', although they stay open'}; every descriptor is freed; the process survives`,
    figures: {
      connected: sockets.length,
      descriptors: `${filesBefore} → ${filesPeak} → ${isFreed ? 'freed' : 'kept'}`,
      'health meanwhile': healthDuring.status,
      'sends again after ms': recoveredMs,
      'memory MB': `${memoryBefore.toFixed(0)} → ${memoryPeak.toFixed(0)}`,
    },
    violations: [
      ...violationUnless(
        !expectsHealth || healthDuring.status === 200,
        `health was ${healthDuring.status} meanwhile`,
      ),
      ...violationUnless(isRecovered, `no send worked within ${trial.allowMs(recoversMsMax)} ms`),
      ...violationUnless(isFreed, `${filesPeak} descriptors were not freed`),
      ...violationUnless(exitedEarly === null, `it ended with ${exitedEarly}`),
      ...violationUnless(exitCode === 0, `it ended with ${exitCode}`),
    ],
  })
}
