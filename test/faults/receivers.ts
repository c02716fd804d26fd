import { logIn } from '../helpers/webhook-client.ts'
import { callApi, newPhone, send, violationUnless, waitUntil } from './calls.ts'
import type { FaultFamily } from './family.ts'
import { misbehaviours, residentMb, startMisbehavingServer } from './misbehaving-server.ts'
import { makeHome, startServerAt } from './server.ts'

const arrivesMsMax = 2_000
const growthMbMax = 40

export const receivers: FaultFamily = {
  name: 'receivers',
  description: 'webhook receivers that refuse, hang, fail, or never finish a response, and one that works',
  counts: { events: { full: 500, short: 50 } },
  async run(trial) {
    const arrivals = new Map<string, number>()
    const goodReceiver = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch(request) {
        const { data }: { data: { requestId: string } } = JSON.parse(await request.text())
        if (!arrivals.has(data.requestId)) arrivals.set(data.requestId, performance.now())
        return new Response('ok')
      },
    })
    const badReceivers = await Promise.all(misbehaviours.map((name) => startMisbehavingServer(name)))
    const server = await startServerAt(makeHome(trial, 'home'))
    try {
      const client = await logIn(server.url)
      const app = await client.createApplication()
      await client.createEndpoint(app, `http://127.0.0.1:${goodReceiver.port}/`)
      for (const { url } of badReceivers) await client.createEndpoint(app, `${url}/`)
      for (let i = 0; i < 10; i++) await send(server.url, app)
      const memoryBefore = residentMb(server.pid)

      const sentAt = new Map<string, number>()
      for (let i = 0; i < trial.count('events'); i++) {
        const startedAt = performance.now()
        const { data } = await send(server.url, app, newPhone())
        if (typeof data['requestId'] === 'string') sentAt.set(data['requestId'], startedAt)
        await Bun.sleep(20)
      }
      await waitUntil(trial.allowMs(arrivesMsMax), () => [...sentAt.keys()].every((id) => arrivals.has(id)))
      const times = [...sentAt].map(([id, at]) => (arrivals.get(id) ?? Infinity) - at)
      const growthMb = residentMb(server.pid) - memoryBefore
      const readiness = await callApi('GET', `${server.url}/v1/health/ready`)
      trial.report({
        scenario: `${sentAt.size} events to a working receiver and to five broken ones (${misbehaviours.join(', ')})`,
        guarantee: 'the working receiver gets each event within 2 s; under 40 MB more',
        figures: {
          arrived: times.filter(Number.isFinite).length,
          'longest ms': Math.round(Math.max(...times)),
          'reached bad ones': badReceivers.map(({ calls }) => calls()).join(' '),
          'grown MB': growthMb.toFixed(1),
        },
        violations: [
          ...violationUnless(sentAt.size === trial.count('events'), 'a send was refused'),
          ...violationUnless(
            times.every(Number.isFinite),
            `${times.filter((ms) => !Number.isFinite(ms)).length} did not arrive`,
          ),
          ...violationUnless(Math.max(...times) <= trial.allowMs(arrivesMsMax), 'an event arrived late'),
          ...violationUnless(growthMb < growthMbMax, `${growthMb.toFixed(1)} MB more`),
          ...violationUnless(readiness.status === 200, `readiness was ${readiness.status}`),
        ],
      })
      const stopStartedAt = performance.now()
      const exitCode = await server.stop()
      trial.report({
        scenario: 'SIGTERM while receivers hang',
        guarantee: 'exit code 0 within 10 s',
        figures: { ms: Math.round(performance.now() - stopStartedAt), 'exit code': exitCode },
        violations: violationUnless(
          exitCode === 0 && performance.now() - stopStartedAt <= trial.allowMs(10_000),
          'it did not exit in time',
        ),
      })
    } finally {
      await server.stop('SIGKILL')
      for (const receiver of badReceivers) receiver.stop()
      await goodReceiver.stop(true)
    }
  },
}
