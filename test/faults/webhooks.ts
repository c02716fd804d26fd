import { Webhook } from 'standardwebhooks'
import { logIn, sendOtp, type TestApp } from '../helpers/webhook-client.ts'
import type { FaultFamily, Trial } from './family.ts'
import { makeHome, startServerAt } from './server.ts'

const failingShare = 0.05
const hangingShare = 0.02
const endpoints = 20
const senders = 8
const drainMsMax = 600_000

export const webhooks: FaultFamily = {
  name: 'webhooks',
  description: 'kill -9 while events go to receivers that fail and hang',
  counts: { 'webhook-events': { full: 10_000, short: 400 }, 'webhook-kills': { full: 30, short: 3 } },
  async run(trial) {
    const events = trial.count('webhook-events')
    const killsMin = trial.count('webhook-kills')
    const apps: TestApp[] = []
    const receiver = startReceiver(trial, apps)
    const home = makeHome(trial, 'home')
    const acknowledged = new Set<string>()
    const startTimesMs: number[] = []
    let server = await startServerAt(home)
    let isServing = true
    let phone = 0

    async function send() {
      while (acknowledged.size < events) {
        const app = apps[phone % endpoints]
        if (!isServing || !app) {
          await Bun.sleep(5)
          continue
        }
        const requestId = await sendOtp(server.url, app, `+1415${2_000_000 + phone++}`)
        if (requestId !== undefined) acknowledged.add(requestId)
      }
    }

    async function killAndRestart() {
      isServing = false
      await server.stop('SIGKILL')
      const before = performance.now()
      server = await startServerAt(home)
      startTimesMs.push(performance.now() - before)
      isServing = true
    }

    const countMissing = () => [...acknowledged].filter((id) => !receiver.delivered.has(id)).length
    try {
      const client = await logIn(server.url)
      for (let i = 0; i < endpoints; i++) {
        const app = await client.createApplication()
        apps.push(app)
        await client.createEndpoint(app, `${receiver.url}${i}`)
      }
      const sending = Promise.all(Array.from({ length: senders }, send))
      for (let kills = 0; kills < killsMin || acknowledged.size < events; kills++) {
        // Kills depend on progress, so that they are spread over the events, with a random offset.
        const step = Math.ceil((events / killsMin) * (0.5 + trial.random() * 0.8))
        const target = Math.min(events, acknowledged.size + step)
        const deadline = performance.now() + 20_000
        while (acknowledged.size < target && performance.now() < deadline) await Bun.sleep(1)
        await Bun.sleep(trial.random() * 100)
        await killAndRestart()
      }
      await sending
      const deadline = performance.now() + drainMsMax
      while (countMissing() > 0 && performance.now() < deadline) await Bun.sleep(100)
    } finally {
      await server.stop('SIGKILL')
      await receiver.stop()
    }

    const { count, delivered } = receiver
    const underSeveralIds = [...delivered.values()].filter((ids) => ids.size > 1).length
    const faults = {
      'never arrived': countMissing(),
      'came under two ids': underSeveralIds,
      'were not signed': count.forged,
    }
    trial.report({
      scenario: `${startTimesMs.length} kills; receivers that answer 500 or hang`,
      guarantee: 'every event arrives, signed, and each repetition has the same webhook-id',
      figures: {
        events: acknowledged.size,
        accepted: count.deliveries,
        'answered 500': count.failed,
        hung: count.hung,
        repeated: count.duplicates,
        'restart max ms': Math.round(Math.max(...startTimesMs)),
      },
      violations: Object.entries(faults).flatMap(([label, many]) =>
        many > 0 ? [`${many} events ${label}`] : [],
      ),
    })
  },
}

/** Starts one receiver for the endpoints of all applications, by their number in the path. */
function startReceiver({ random, short }: Trial, apps: TestApp[]) {
  /** Webhook ids that each request's event was delivered with. */
  const delivered = new Map<string, Set<string>>()
  const refusedOnce = new Set<string>()
  const seenIds = new Set<string>()
  const count = { deliveries: 0, duplicates: 0, failed: 0, hung: 0, forged: 0 }
  // A hanging attempt takes longer than the short form allows.
  const hangShare = short ? 0 : hangingShare

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
      // Never twice in a row: the third attempt is five minutes later, and waiting for it would test nothing new.
      const chance = refusedOnce.has(id) ? 1 : random()
      if (chance < failingShare + hangShare) {
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
      if (seenIds.has(id)) count.duplicates++
      seenIds.add(id)
      return new Response('ok')
    },
  })
  return { url: receiver.url.href, delivered, count, stop: () => receiver.stop(true) }
}
