import { appendFileSync } from 'node:fs'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { countStatuses, send, unless, watchHealth, type Answer } from './calls.ts'
import type { Family } from './family.ts'
import { misbehaviours, residentMb, startBadServer } from './misbehaviours.ts'
import { makeHome, startAt } from './server.ts'

const providerMs = 8_000
const restMsMax = 1_000
const growthMbMax = 40

export const providers: Family = {
  name: 'providers',
  about: 'providers of messages that refuse, hang, fail, or never end',
  counts: { sends: { full: 100, short: 10 } },
  async run(trial) {
    const good = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json({ messageId: 'm' }) })
    const bad = await Promise.all(
      misbehaviours.map(async (name) => ({ name, server: await startBadServer(name) })),
    )
    const at = makeHome(trial, 'home')
    const urls = [
      ...bad.map(({ name, server }) => [name, server.url]),
      ['good', `http://127.0.0.1:${good.port}`],
    ]
    for (const [name, url] of urls) {
      const secret = `secretEnv = "OTPD_SECRET_PROVIDER"`
      appendFileSync(
        at.config,
        `[[providers]]\nname = "${name}"\nkind = "http"\nurl = "${url}/"\n${secret}\n`,
      )
    }
    for (const [index, { name }] of bad.entries()) {
      appendFileSync(
        at.config,
        `[[routes]]\nchannel = "sms"\nprefixes = ["+4915${index}"]\nproviders = ["${name}"]\n`,
      )
    }
    appendFileSync(at.config, '[[routes]]\nchannel = "sms"\nproviders = ["good"]\n')
    const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
    const server = await startAt(at, { OTPD_SECRET_PROVIDER: secret })
    try {
      const client = await logIn(server.url)
      const app = await client.createApplication('Live', 'live')
      const other = await client.createApplication('Other', 'live')
      const alone = await measureOthers(server.url, other, 30)
      for (const [index, { name }] of bad.entries()) {
        const memoryBefore = residentMb(server.pid)
        const stopWatch = watchHealth(server.url)
        const ending = new AbortController()
        const calls = Promise.all(
          Array.from({ length: trial.count('sends') }, (_, i) =>
            send(server.url, app, `+4915${index}${String(1_000_000 + i)}`),
          ),
        ).finally(() => ending.abort())
        const beside: Answer[] = []
        do beside.push(...(await measureOthers(server.url, other, 10)))
        while (!ending.signal.aborted)
        const answers = await calls
        const health = await stopWatch()
        const grownMb = residentMb(server.pid) - memoryBefore
        const longestMs = Math.max(...answers.map(({ ms }) => ms))
        trial.report({
          tried: `a provider that ${name}: ${answers.length} sends to it at once, and another application's beside`,
          promised:
            '201 within 9 s: the message waits, or may be there; the other application as before; under 40 MB more',
          figures: {
            answered: countStatuses(answers),
            'longest ms': longestMs,
            'other alone p50 ms': median(alone),
            'other beside p50 ms': median(beside),
            'health p99 ms': health.p99Ms,
            'grown MB': grownMb.toFixed(1),
          },
          broken: [
            ...unless(
              answers.every(({ status }) => status === 201),
              `answered ${countStatuses(answers)}`,
            ),
            ...unless(longestMs <= providerMs + trial.allowMs(restMsMax), `an answer took ${longestMs} ms`),
            ...unless(
              beside.every(({ status }) => status === 201),
              `the other application got ${countStatuses(beside)}`,
            ),
            ...unless(
              median(beside) <= median(alone) * 2 + trial.allowMs(20),
              'the other application waited',
            ),
            ...unless(health.failed === 0, `health failed ${health.failed} times`),
            ...unless(grownMb < growthMbMax, `${grownMb.toFixed(1)} MB more`),
          ],
        })
      }
    } finally {
      await server.stop()
      for (const one of bad) one.server.stop()
      await good.stop(true)
    }
  },
}

async function measureOthers(url: string, app: TestApp, count: number): Promise<Answer[]> {
  const answers: Answer[] = []
  for (let i = 0; i < count; i++) answers.push(await send(url, app))
  return answers
}

const median = (answers: readonly Answer[]) =>
  answers.map(({ ms }) => ms).toSorted((a, b) => a - b)[Math.floor(answers.length / 2)] ?? 0
