import { logIn } from '../helpers/webhook-client.ts'
import { ask, newPhone, send, unless, within } from './calls.ts'
import type { Family } from './family.ts'
import { misbehaviours, residentMb, startBadServer } from './misbehaviours.ts'
import { makeHome, startAt } from './server.ts'

const arrivesMsMax = 2_000
const growthMbMax = 40

export const receivers: Family = {
  name: 'receivers',
  about: 'receivers of webhooks that refuse, hang, fail, or never end, beside one that works',
  counts: { events: { full: 500, short: 50 } },
  async run(trial) {
    const arrivals = new Map<string, number>()
    const good = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch(request) {
        const { data }: { data: { requestId: string } } = JSON.parse(await request.text())
        if (!arrivals.has(data.requestId)) arrivals.set(data.requestId, performance.now())
        return new Response('ok')
      },
    })
    const bad = await Promise.all(misbehaviours.map((name) => startBadServer(name)))
    const server = await startAt(makeHome(trial, 'home'))
    try {
      const client = await logIn(server.url)
      const app = await client.createApplication()
      await client.createEndpoint(app, `http://127.0.0.1:${good.port}/`)
      for (const { url } of bad) await client.createEndpoint(app, `${url}/`)
      for (let i = 0; i < 10; i++) await send(server.url, app)
      const memoryBefore = residentMb(server.pid)

      const sentAt = new Map<string, number>()
      for (let i = 0; i < trial.count('events'); i++) {
        const startedAt = performance.now()
        const { data } = await send(server.url, app, newPhone())
        if (typeof data['requestId'] === 'string') sentAt.set(data['requestId'], startedAt)
        await Bun.sleep(20)
      }
      await within(trial.allowMs(arrivesMsMax), () => [...sentAt.keys()].every((id) => arrivals.has(id)))
      const times = [...sentAt].map(([id, at]) => (arrivals.get(id) ?? Infinity) - at)
      const grownMb = residentMb(server.pid) - memoryBefore
      const tested = await ask('GET', `${server.url}/v1/health/ready`)
      trial.report({
        tried: `${sentAt.size} events to a receiver that works, and to five that do not (${misbehaviours.join(', ')})`,
        promised: 'the one that works gets each within 2 s; under 40 MB more',
        figures: {
          arrived: times.filter(Number.isFinite).length,
          'longest ms': Math.round(Math.max(...times)),
          'reached bad ones': bad.map(({ calls }) => calls()).join(' '),
          'grown MB': grownMb.toFixed(1),
        },
        broken: [
          ...unless(sentAt.size === trial.count('events'), 'a send was refused'),
          ...unless(
            times.every(Number.isFinite),
            `${times.filter((ms) => !Number.isFinite(ms)).length} did not arrive`,
          ),
          ...unless(Math.max(...times) <= trial.allowMs(arrivesMsMax), 'an event came late'),
          ...unless(grownMb < growthMbMax, `${grownMb.toFixed(1)} MB more`),
          ...unless(tested.status === 200, `readiness was ${tested.status}`),
        ],
      })
      const stopAt = performance.now()
      const exitCode = await server.stop()
      trial.report({
        tried: 'SIGTERM while receivers hang',
        promised: 'exit code 0 within 10 s',
        figures: { ms: Math.round(performance.now() - stopAt), 'exit code': exitCode },
        broken: unless(
          exitCode === 0 && performance.now() - stopAt <= trial.allowMs(10_000),
          'it did not end in time',
        ),
      })
    } finally {
      await server.stop('SIGKILL')
      for (const one of bad) one.stop()
      await good.stop(true)
    }
  },
}
