import { readdirSync } from 'node:fs'
import type { Socket } from 'bun'
import { logIn } from '../helpers/webhook-client.ts'
import { ask, send, unless, within } from './calls.ts'
import type { Family, Trial } from './family.ts'
import { residentMb } from './misbehaviours.ts'
import { makeHome, startAt } from './server.ts'

const recoversMsMax = 15_000

export const descriptors: Family = {
  name: 'descriptors',
  about: 'no file descriptors left, and thousands of connections that say half of a request',
  counts: { connections: { full: 5_000, short: 1_000 } },
  async run(trial) {
    await exhaust(trial, {
      name: 'few',
      tried: 'a limit of 200 file descriptors, and 300 half-open connections',
      limit: 200,
      connections: 300,
      answersMeanwhile: false,
    })
    const connections = trial.count('connections')
    await exhaust(trial, {
      name: 'many',
      tried: `${connections} half-open connections, each with 8 KB of headers`,
      connections,
      answersMeanwhile: true,
    })
  },
}

type Exhaustion = {
  name: string
  tried: string
  limit?: number
  connections: number
  /** Whether descriptors are left for others. */
  answersMeanwhile: boolean
}

const half = `POST /v1/otp/send HTTP/1.1\r\nhost: x\r\nx-filler: ${'a'.repeat(8_000)}\r\nx-more: `

async function exhaust(trial: Trial, { name, tried, limit, connections, answersMeanwhile }: Exhaustion) {
  const server = await startAt(makeHome(trial, name))
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
    const socket = { open: (one: Socket) => void one.write(half), data() {}, error() {} }
    const made = await Bun.connect({ hostname, port: Number(port), socket }).catch(() => undefined)
    if (made) sockets.push(made)
  }
  for (let i = 0; i < connections; i += 100) await Promise.all(Array.from({ length: 100 }, open))
  await Bun.sleep(500)
  const filesMost = openFiles()
  const meanwhile = await ask('GET', `${server.url}/v1/health`, { timeoutMs: trial.allowMs(3_000) })
  const memoryMost = residentMb(server.pid)

  // In the full form nobody lets go: the server has to.
  if (trial.short) for (const socket of sockets) socket.terminate()
  const openedAt = performance.now()
  const recovered = await within(
    trial.allowMs(recoversMsMax),
    async () => (await send(server.url, app)).status === 201,
  )
  const recoveredMs = Math.round(performance.now() - openedAt)
  const freed = await within(trial.allowMs(recoversMsMax), () => openFiles() <= filesBefore + 10)
  const stillRuns = await Promise.race([server.exited, Promise.resolve(null)])
  for (const socket of sockets) socket.end()
  const exitCode = await server.stop()
  trial.report({
    tried,
    promised: `sends work again within 15 s${trial.short ? ' of their end' : ', though they stay'}; every descriptor is freed; the process lives`,
    figures: {
      connected: sockets.length,
      descriptors: `${filesBefore} → ${filesMost} → ${freed ? 'freed' : 'kept'}`,
      'health meanwhile': meanwhile.status,
      'sends again after ms': recoveredMs,
      'memory MB': `${memoryBefore.toFixed(0)} → ${memoryMost.toFixed(0)}`,
    },
    broken: [
      ...unless(!answersMeanwhile || meanwhile.status === 200, `health was ${meanwhile.status} meanwhile`),
      ...unless(recovered, `no send worked within ${trial.allowMs(recoversMsMax)} ms`),
      ...unless(freed, `${filesMost} descriptors were not freed`),
      ...unless(stillRuns === null, `it ended with ${stillRuns}`),
      ...unless(exitCode === 0, `it ended with ${exitCode}`),
    ],
  })
}
