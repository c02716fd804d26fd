import { appendFileSync } from 'node:fs'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { ask, countStatuses, send, unless, type Answer } from './calls.ts'
import type { Family, Trial } from './family.ts'
import { findLost } from './full.ts'
import { makeHome, startAt } from './server.ts'

const endsMsMax = 10_000

export const stops: Family = {
  name: 'stops',
  about: 'SIGTERM under load, once and twice, and while a provider is slow',
  counts: { stops: { full: 20, short: 1 } },
  async run(trial) {
    const runs: Stopped[] = []
    for (let i = 0; i < trial.count('stops'); i++) runs.push(await stopUnderLoad(trial, i))
    trial.report({
      tried: `SIGTERM under 200 sends a second; servers: ${runs.length}`,
      promised: 'every call that was under way is answered, exit code 0 within 10 s, nothing lost',
      figures: {
        'answered before': countStatuses(runs.flatMap(({ before }) => before)),
        'answered after': countStatuses(runs.flatMap(({ after }) => after)),
        'longest ms': Math.max(...runs.map(({ tookMs }) => tookMs)),
      },
      broken: runs.flatMap(({ broken }) => broken),
    })
    await stopWhileCarried(trial)
    await stopTwice(trial)
  },
}

type Sent = { answer: Answer; startedAt: number }

type Stopped = { before: Answer[]; after: Answer[]; tookMs: number; broken: string[] }

async function stopUnderLoad(trial: Trial, number: number): Promise<Stopped> {
  const at = makeHome(trial, `stopped-${number}`)
  const server = await startAt(at)
  const app = await (await logIn(server.url)).createApplication()
  const sent: Promise<Sent>[] = []
  const ending = new AbortController()
  // 200 a second, whether the answers come or not, each on a connection of its own.
  const load = (async () => {
    while (!ending.signal.aborted) {
      const startedAt = performance.now()
      sent.push(send(server.url, app).then((answer) => ({ answer, startedAt })))
      await Bun.sleep(5)
    }
  })()
  await Bun.sleep(500 + trial.random() * 500)
  const askedAt = performance.now()
  const exitCode = await server.stop()
  const tookMs = Math.round(performance.now() - askedAt)
  ending.abort()
  await load
  const calls = await Promise.all(sent)
  const before = calls.filter(({ startedAt }) => startedAt < askedAt)
  const failed = before.filter(({ answer }) => answer.status !== 201)
  const during = calls.filter(({ startedAt }) => startedAt >= askedAt).map(({ answer }) => answer)
  const odd = during.filter(({ status }) => status !== 201 && status !== 503 && status !== 0)
  const acknowledged = calls.filter(({ answer }) => answer.status === 201).map(({ answer }) => answer.data)
  const lost = await findLost(
    at,
    acknowledged.map(({ requestId, code }) => ({ requestId, code })),
  )
  return {
    before: before.map(({ answer }) => answer),
    after: during,
    tookMs,
    broken: [
      ...unless(failed.length === 0, `${failed.length} calls under way failed`),
      ...unless(odd.length === 0, `odd answers: ${countStatuses(odd)}`),
      ...unless(exitCode === 0, `it ended with ${exitCode}`),
      ...unless(tookMs <= trial.allowMs(endsMsMax), `it took ${tookMs} ms`),
      ...unless(lost.length === 0, `lost ${lost.slice(0, 3).join(', ')}`),
    ],
  }
}

const carriedAfterMs = 4_000

/** The message of a call that is under way is longer on its way than callers are waited for. */
async function stopWhileCarried(trial: Trial): Promise<void> {
  const reached = Promise.withResolvers<void>()
  const provider = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch() {
      reached.resolve()
      await Bun.sleep(carriedAfterMs)
      return Response.json({ messageId: 'm' })
    },
  })
  const at = makeHome(trial, 'stopped-while-carried')
  const url = `http://127.0.0.1:${provider.port}/`
  const account = `[[providers]]\nname = "slow"\nkind = "http"\nurl = "${url}"\nsecretEnv = "OTPD_SECRET_PROVIDER"\n`
  appendFileSync(at.config, account)
  const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
  const server = await startAt(at, { OTPD_SECRET_PROVIDER: secret })
  const app: TestApp = await (await logIn(server.url)).createApplication('Live', 'live')
  const answer = send(server.url, app)
  await reached.promise
  const askedAt = performance.now()
  const exitCode = await server.stop()
  const tookMs = Math.round(performance.now() - askedAt)
  const { status } = await answer
  await provider.stop(true)
  trial.report({
    tried: `SIGTERM while a provider takes ${carriedAfterMs / 1000} s for a message`,
    promised: 'the call is answered 201, exit code 0 within 10 s',
    figures: { answered: status, ms: tookMs },
    broken: [
      ...unless(status === 201, `the call was ${status}`),
      ...unless(exitCode === 0, `it ended with ${exitCode}`),
      ...unless(tookMs <= trial.allowMs(endsMsMax), `it took ${tookMs} ms`),
    ],
  })
}

/** A call that its client does not finish holds the server for seconds; whoever asks twice does not wait for it. */
async function stopTwice(trial: Trial): Promise<void> {
  const server = await startAt(makeHome(trial, 'stopped-twice'))
  const { hostname, port } = new URL(server.url)
  const connection = await Bun.connect({ hostname, port: Number(port), socket: { data() {} } })
  connection.write(
    'POST /v1/otp/send HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{',
  )
  // One that was sent later has been answered, so the server knows of this one.
  await ask('GET', `${server.url}/v1/health`)
  process.kill(server.pid, 'SIGTERM')
  await server.logged('Shutting down')
  const again = await Promise.race([server.exited, Promise.resolve(null)])
  const askedAt = performance.now()
  const exitCode = await server.stop()
  const tookMs = Math.round(performance.now() - askedAt)
  connection.end()
  trial.report({
    tried: 'SIGTERM twice while a call does not end',
    promised: 'the second signal ends it at once, with exit code 143',
    figures: { ms: tookMs, 'exit code': exitCode },
    broken: [
      ...unless(again === null, 'the first signal had ended it already'),
      ...unless(exitCode === 143, `it ended with ${exitCode}`),
      ...unless(tookMs <= trial.allowMs(500), `it took ${tookMs} ms`),
    ],
  })
}
