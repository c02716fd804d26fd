import { appendFileSync } from 'node:fs'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { countStatuses, send, violationUnless, watchHealth, type CallResult } from './calls.ts'
import type { FaultFamily } from './family.ts'
import { misbehaviours, residentMb, startMisbehavingServer } from './misbehaving-server.ts'
import { makeHome, startServerAt } from './server.ts'

const providerMs = 8_000
const overheadMsMax = 1_000
const growthMbMax = 40

export const providers: FaultFamily = {
  name: 'providers',
  description: 'message providers that refuse, hang, fail, or never finish a response',
  counts: { sends: { full: 100, short: 10 } },
  async run(trial) {
    const goodProvider = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => Response.json({ messageId: 'm' }),
    })
    const badProviders = await Promise.all(
      misbehaviours.map(async (name) => ({ name, server: await startMisbehavingServer(name) })),
    )
    const serverHome = makeHome(trial, 'home')
    const urls = [
      ...badProviders.map(({ name, server }) => [name, server.url]),
      ['good', `http://127.0.0.1:${goodProvider.port}`],
    ]
    for (const [name, url] of urls) {
      const secret = `secretEnv = "OTPD_SECRET_PROVIDER"`
      appendFileSync(
        serverHome.config,
        `[[providers]]\nname = "${name}"\nkind = "http"\nurl = "${url}/"\n${secret}\n`,
      )
    }
    for (const [index, { name }] of badProviders.entries()) {
      appendFileSync(
        serverHome.config,
        `[[routes]]\nchannel = "sms"\nprefixes = ["+4915${index}"]\nproviders = ["${name}"]\n`,
      )
    }
    appendFileSync(serverHome.config, '[[routes]]\nchannel = "sms"\nproviders = ["good"]\n')
    const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
    const server = await startServerAt(serverHome, { OTPD_SECRET_PROVIDER: secret })
    try {
      const client = await logIn(server.url)
      const app = await client.createApplication('Live', 'live')
      const other = await client.createApplication('Other', 'live')
      const baseline = await sendSequentially(server.url, other, 30)
      for (const [index, { name }] of badProviders.entries()) {
        const memoryBefore = residentMb(server.pid)
        const stopWatch = watchHealth(server.url)
        const controller = new AbortController()
        const calls = Promise.all(
          Array.from({ length: trial.count('sends') }, (_, i) =>
            send(server.url, app, `+4915${index}${String(1_000_000 + i)}`),
          ),
        ).finally(() => controller.abort())
        const concurrent: CallResult[] = []
        // With pauses: what a flat-out load leaves to the collector is not the hanging provider's memory.
        do {
          concurrent.push(...(await sendSequentially(server.url, other, 10)))
          await Bun.sleep(20)
        } while (!controller.signal.aborted)
        const responses = await calls
        const health = await stopWatch()
        const growthMb = residentMb(server.pid) - memoryBefore
        const longestMs = Math.max(...responses.map(({ ms }) => ms))
        trial.report({
          scenario: `a provider that ${name}: ${responses.length} concurrent sends to it, and sends of another application`,
          guarantee:
            '201 within 9 s; the message is queued or may have arrived; the other application is not slowed; under 40 MB more',
          figures: {
            answered: countStatuses(responses),
            'longest ms': longestMs,
            'other alone p50 ms': median(baseline),
            'other meanwhile p50 ms': median(concurrent),
            'health p99 ms': health.p99Ms,
            'grown MB': growthMb.toFixed(1),
          },
          violations: [
            ...violationUnless(
              responses.every(({ status }) => status === 201),
              `answered ${countStatuses(responses)}`,
            ),
            ...violationUnless(
              longestMs <= providerMs + trial.allowMs(overheadMsMax),
              `a response took ${longestMs} ms`,
            ),
            ...violationUnless(
              concurrent.every(({ status }) => status === 201),
              `the other application got ${countStatuses(concurrent)}`,
            ),
            ...violationUnless(
              median(concurrent) <= median(baseline) * 2 + trial.allowMs(20),
              'the other application waited',
            ),
            ...violationUnless(health.failed === 0, `health failed ${health.failed} times`),
            ...violationUnless(growthMb < growthMbMax, `${growthMb.toFixed(1)} MB more`),
          ],
        })
      }
    } finally {
      await server.stop()
      for (const provider of badProviders) provider.server.stop()
      await goodProvider.stop(true)
    }
  },
}

async function sendSequentially(url: string, app: TestApp, count: number): Promise<CallResult[]> {
  const responses: CallResult[] = []
  for (let i = 0; i < count; i++) responses.push(await send(url, app))
  return responses
}

const median = (responses: readonly CallResult[]) =>
  responses.map(({ ms }) => ms).toSorted((a, b) => a - b)[Math.floor(responses.length / 2)] ?? 0
