import { readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { startServer } from '../helpers/binary.ts'
import {
  logIn,
  makeServerHome,
  sendOtp,
  type TestApp,
  type WebhookClient,
} from '../helpers/webhook-client.ts'

// Noisy neighbors: how long events take to reach good webhook receivers before and after other receivers turn bad, and
// how the server's memory changes. `bun test/faults/webhook-noisy-neighbours.ts [SECONDS] [EVENTS_PER_SECOND]`

const seconds = Number(process.argv[2] ?? 60)
const goodEndpointCount = 5
const eventsPerSecond = Number(process.argv[3] ?? 20)

const print = (line: string) => process.stdout.write(`${line}\n`)
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const percentile = (values: number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? NaN

/** Arrival times by event, recorded by receivers that answer at once. */
const arrivals = new Map<string, number>()
const goodReceiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const { data }: { data: { requestId: string } } = JSON.parse(await request.text())
    arrivals.set(data.requestId, performance.now())
    return new Response('ok')
  },
})

const sockets = new Set<Socket>()
function listen(behave: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.once('data', () => behave(socket))
  })
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () =>
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
    ),
  )
}
const chunk = Buffer.alloc(64 * 1024, 'x')
const misbehaviours: Record<string, (socket: Socket) => void> = {
  hangs: () => {},
  'answers after 14 s': (socket) =>
    void setTimeout(() => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'), 14_000),
  'sends an endless body': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
    const flood = () => {
      while (!socket.destroyed && socket.write(`10000\r\n${chunk.toString()}\r\n`));
    }
    socket.on('drain', flood)
    flood()
  },
  redirects: (socket) =>
    void socket.end(
      'HTTP/1.1 307 Temporary Redirect\r\nlocation: https://127.0.0.1/\r\ncontent-length: 0\r\n\r\n',
    ),
  resets: (socket) => void socket.resetAndDestroy(),
}

const options = makeServerHome()
const server = await startServer(options)
const memoryMb = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1]) / 1024

type Measured = { delays: number[]; lost: number }

/** Sends at a constant rate. @returns how long each event took from the API call to its receiver */
async function measure(app: TestApp, durationSeconds: number): Promise<Measured> {
  const sent = new Map<string, number>()
  const start = performance.now()
  const sends: Promise<unknown>[] = []
  const sendOne = async (startedAt: number) => {
    const id = await sendOtp(server.url, app, `+1415${2_000_000 + phone++}`)
    if (id !== undefined) sent.set(id, startedAt)
  }
  for (let i = 0; i < durationSeconds * eventsPerSecond; i++) {
    await sleep(Math.max(0, start + (i * 1000) / eventsPerSecond - performance.now()))
    sends.push(sendOne(performance.now()))
  }
  await Promise.all(sends)
  await sleep(2_000)
  const delays = [...sent].flatMap(([id, startedAt]) =>
    arrivals.has(id) ? [(arrivals.get(id) ?? 0) - startedAt] : [],
  )
  return { delays, lost: sent.size - delays.length }
}
let phone = 0

/** Counts the errors that caused a retry to a good receiver. */
async function countRetryErrors(client: WebhookClient): Promise<Record<string, number>> {
  const errors: Record<string, number> = {}
  for (const id of goodIds) {
    type Delivery = { id: string; attempts: number }
    const path = `/v1/webhooks/${id}/deliveries`
    for (const delivery of (await client.call<Delivery[]>('GET', `${path}?limit=200`)).filter(
      (row) => row.attempts > 1,
    )) {
      const { attempts } = await client.call<{ attempts: { error: string | null }[] }>(
        'GET',
        `${path}/${delivery.id}`,
      )
      for (const { error } of attempts) if (error !== null) errors[error] = (errors[error] ?? 0) + 1
    }
  }
  return errors
}
const goodIds: string[] = []

try {
  const client = await logIn(server.url)
  const app = await client.createApplication()
  for (let i = 0; i < goodEndpointCount; i++) {
    goodIds.push((await client.createEndpoint(app, `http://127.0.0.1:${goodReceiver.port}/${i}`)).id)
  }
  await measure(app, 5)
  const baseline = await measure(app, seconds / 2)
  const memoryBefore = memoryMb()
  for (const behave of Object.values(misbehaviours)) {
    const url = await listen(behave)
    for (let i = 0; i < 2; i++) await client.createEndpoint(app, url)
  }
  const memory = [memoryBefore]
  const withNeighbours: Measured = { delays: [], lost: 0 }
  for (let part = 0; part < 4; part++) {
    const { delays, lost } = await measure(app, seconds / 4)
    withNeighbours.delays.push(...delays)
    withNeighbours.lost += lost
    memory.push(memoryMb())
  }
  const retryErrors = await countRetryErrors(client)

  print(
    `${goodEndpointCount} good endpoints, ${eventsPerSecond} events a second; then two each that: ${Object.keys(misbehaviours).join(', ')}`,
  )
  print('| | events | not arrived | p50 ms | p99 ms | longest ms |\n|---|---|---|---|---|---|')
  for (const [name, { delays, lost }] of Object.entries({
    alone: baseline,
    'with bad neighbors': withNeighbours,
  })) {
    const figures = [percentile(delays, 0.5), percentile(delays, 0.99), Math.max(...delays)]
    print(`| ${name} | ${delays.length} | ${lost} | ${figures.map((ms) => ms.toFixed(1)).join(' | ')} |`)
  }
  const ratio = percentile(withNeighbours.delays, 0.5) / percentile(baseline.delays, 0.5)
  print(`median with bad neighbors / alone: ${ratio.toFixed(2)}`)
  print(
    `memory, alone and at each quarter with bad neighbors: ${memory.map((mb) => mb.toFixed(0)).join(', ')} MB`,
  )
  print(`retries to good receivers, by error: ${JSON.stringify(retryErrors)}`)
  if (withNeighbours.lost > 0 || percentile(withNeighbours.delays, 0.99) > 2_000) process.exitCode = 1
} finally {
  await server.stop()
  await goodReceiver.stop(true)
  rmSync(options.home, { recursive: true, force: true })
  process.exit()
}
