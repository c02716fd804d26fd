import { rmSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { logIn, makeServerHome, sendOtp, type TestApp } from '../helpers/webhook-client.ts'

// Webhooks of the compiled binary while it is killed over and over, to receivers that fail and hang:
// `bun test/faults/webhooks.ts [events] [kills]`. Fails where an event that the server had acknowledged never arrives, or
// arrives under two ids.

const events = Number(process.argv[2] ?? 10_000)
const killsMin = Number(process.argv[3] ?? 30)
const failingShare = 0.05
const hangingShare = 0.02
const endpoints = 20
const senders = 8

const print = (line: string) => process.stdout.write(`${line}\n`)
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const apps: TestApp[] = []
const acknowledged = new Set<string>()
/** Of each request: the ids that it was delivered under. */
const delivered = new Map<string, Set<string>>()
const refusedOnce = new Set<string>()
const seen = new Set<string>()
const count = { deliveries: 0, duplicates: 0, failed: 0, hung: 0, forged: 0 }

const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 120,
  async fetch(request) {
    const body = await request.text()
    const app = apps[Number(new URL(request.url).pathname.slice(1))]
    const id = request.headers.get('webhook-id') ?? ''
    try {
      new Webhook(app?.webhookSecret ?? '').verify(body, Object.fromEntries(request.headers))
    } catch {
      count.forged++
    }
    // Never twice in a row: the third attempt is five minutes later, and nothing new would be learned by waiting.
    const chance = refusedOnce.has(id) ? 1 : Math.random()
    if (chance < failingShare + hangingShare) {
      refusedOnce.add(id)
      if (chance < failingShare) {
        count.failed++
        return new Response('no', { status: 500 })
      }
      count.hung++
      return new Promise<Response>(() => {})
    }
    const { data }: { data: { requestId: string } } = JSON.parse(body)
    const ids = delivered.get(data.requestId) ?? new Set()
    delivered.set(data.requestId, ids.add(id))
    count.deliveries++
    if (seen.has(id)) count.duplicates++
    seen.add(id)
    return new Response('ok')
  },
})

const options = makeServerHome()
const startedAt = performance.now()
let server: RunningServer = await startServer(options)
let serving = true
let kills = 0
const startTimesMs: number[] = []
let phone = 0

async function send() {
  while (acknowledged.size < events) {
    const app = apps[phone % endpoints]
    if (!serving || !app) {
      await sleep(5)
      continue
    }
    const requestId = await sendOtp(server.url, app, `+1415${2_000_000 + phone++}`)
    if (requestId !== undefined) acknowledged.add(requestId)
  }
}

const missing = () => [...acknowledged].filter((id) => !delivered.has(id)).length

try {
  const client = await logIn(server.url)
  for (let i = 0; i < endpoints; i++) {
    const app = await client.createApplication()
    apps.push(app)
    await client.createEndpoint(app, `http://127.0.0.1:${receiver.port}/${i}`)
  }
  const sending = Promise.all(Array.from({ length: senders }, send))
  while (kills < killsMin || acknowledged.size < events) {
    // By progress, so that the kills are spread over the events, and at some moment of that.
    const next = Math.min(
      events,
      acknowledged.size + Math.ceil((events / killsMin) * (0.5 + Math.random() * 0.8)),
    )
    const patience = performance.now() + 20_000
    while (acknowledged.size < next && performance.now() < patience) await sleep(1)
    await sleep(Math.random() * 100)
    serving = false
    await server.stop('SIGKILL')
    kills++
    const before = performance.now()
    server = await startServer(options)
    startTimesMs.push(performance.now() - before)
    serving = true
  }
  await sending
  const drainStartedAt = performance.now()
  while (missing() > 0 && performance.now() - drainStartedAt < 600_000) await sleep(100)

  const ambiguous = [...delivered.values()].filter((ids) => ids.size > 1).length
  const seconds = (performance.now() - startedAt) / 1000
  print(
    `${acknowledged.size} events acknowledged, ${kills} kills, ${endpoints} endpoints, ${seconds.toFixed(0)} s`,
  )
  print(`receivers: ${count.failed} answered 500, ${count.hung} hung, ${count.deliveries} accepted`)
  print(`restart: at most ${Math.max(...startTimesMs).toFixed(0)} ms`)
  print(`lost: ${missing()}`)
  print(
    `duplicates: ${count.duplicates}, under another webhook-id: ${ambiguous}, not verified: ${count.forged}`,
  )
  if (missing() + ambiguous + count.forged > 0) process.exitCode = 1
} finally {
  await server.stop()
  await receiver.stop(true)
  rmSync(options.home, { recursive: true, force: true })
}
