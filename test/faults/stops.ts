import { appendFileSync } from 'node:fs'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { callApi, countStatuses, send, violationUnless, type CallResult } from './calls.ts'
import type { FaultFamily, Trial } from './family.ts'
import { findLost } from './full.ts'
import { makeHome, startServerAt } from './server.ts'

const endsMsMax = 10_000

export const stops: FaultFamily = {
  name: 'stops',
  description: 'SIGTERM under load, once and twice, and while a provider is slow',
  counts: { stops: { full: 20, short: 1 } },
  async run(trial) {
    const runs: StopResult[] = []
    for (let i = 0; i < trial.count('stops'); i++) runs.push(await stopUnderLoad(trial, i))
    trial.report({
      scenario: `SIGTERM under 200 sends a second; servers: ${runs.length}`,
      guarantee: 'every call in progress is answered, exit code 0 within 10 s, nothing lost',
      figures: {
        'answered before': countStatuses(runs.flatMap(({ before }) => before)),
        'answered after': countStatuses(runs.flatMap(({ after }) => after)),
        'longest ms': Math.max(...runs.map(({ tookMs }) => tookMs)),
      },
      violations: runs.flatMap(({ violations: broken }) => broken),
    })
    await stopDuringSend(trial)
    await stopTwice(trial)
  },
}

type Sent = { response: CallResult; startedAt: number }

type StopResult = { before: CallResult[]; after: CallResult[]; tookMs: number; violations: string[] }

async function stopUnderLoad(trial: Trial, number: number): Promise<StopResult> {
  const serverHome = makeHome(trial, `stopped-${number}`)
  const server = await startServerAt(serverHome)
  const app = await (await logIn(server.url)).createApplication()
  const sent: Promise<Sent>[] = []
  const controller = new AbortController()
  // Open-loop load of 200 calls a second, each on a new connection.
  const loadLoop = (async () => {
    while (!controller.signal.aborted) {
      const startedAt = performance.now()
      sent.push(send(server.url, app).then((response) => ({ response, startedAt })))
      await Bun.sleep(5)
    }
  })()
  await Bun.sleep(500 + trial.random() * 500)
  const stopRequestedAt = performance.now()
  const exitCode = await server.stop()
  const tookMs = Math.round(performance.now() - stopRequestedAt)
  controller.abort()
  await loadLoop
  const calls = await Promise.all(sent)
  const before = calls.filter(({ startedAt }) => startedAt < stopRequestedAt)
  const failed = before.filter(({ response }) => response.status !== 201)
  const callsAfter = calls
    .filter(({ startedAt }) => startedAt >= stopRequestedAt)
    .map(({ response }) => response)
  const unexpected = callsAfter.filter(({ status }) => status !== 201 && status !== 503 && status !== 0)
  const acknowledged = calls
    .filter(({ response }) => response.status === 201)
    .map(({ response: answer }) => answer.data)
  const lost = await findLost(
    serverHome,
    acknowledged.map(({ requestId, code }) => ({ requestId, code })),
  )
  return {
    before: before.map(({ response }) => response),
    after: callsAfter,
    tookMs,
    violations: [
      ...violationUnless(failed.length === 0, `${failed.length} calls in progress failed`),
      ...violationUnless(unexpected.length === 0, `unexpected responses: ${countStatuses(unexpected)}`),
      ...violationUnless(exitCode === 0, `it ended with ${exitCode}`),
      ...violationUnless(tookMs <= trial.allowMs(endsMsMax), `it took ${tookMs} ms`),
      ...violationUnless(lost.length === 0, `lost ${lost.slice(0, 3).join(', ')}`),
    ],
  }
}

const sendDelayMs = 4_000

/** Stops the server while the provider takes longer for a message than the shutdown waits for callers. */
async function stopDuringSend(trial: Trial): Promise<void> {
  const providerReached = Promise.withResolvers<void>()
  const provider = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch() {
      providerReached.resolve()
      await Bun.sleep(sendDelayMs)
      return Response.json({ messageId: 'm' })
    },
  })
  const serverHome = makeHome(trial, 'stopped-while-carried')
  const url = `http://127.0.0.1:${provider.port}/`
  const providerConfig = `[[providers]]\nname = "slow"\nkind = "http"\nurl = "${url}"\nsecretEnv = "OTPD_SECRET_PROVIDER"\n`
  appendFileSync(serverHome.config, providerConfig)
  const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
  const server = await startServerAt(serverHome, { OTPD_SECRET_PROVIDER: secret })
  const app: TestApp = await (await logIn(server.url)).createApplication('Live', 'live')
  const response = send(server.url, app)
  await providerReached.promise
  const stopRequestedAt = performance.now()
  const exitCode = await server.stop()
  const tookMs = Math.round(performance.now() - stopRequestedAt)
  const { status } = await response
  await provider.stop(true)
  trial.report({
    scenario: `SIGTERM while a provider takes ${sendDelayMs / 1000} s for a message`,
    guarantee: 'the call is answered 201, exit code 0 within 10 s',
    figures: { answered: status, ms: tookMs },
    violations: [
      ...violationUnless(status === 201, `the call was ${status}`),
      ...violationUnless(exitCode === 0, `it ended with ${exitCode}`),
      ...violationUnless(tookMs <= trial.allowMs(endsMsMax), `it took ${tookMs} ms`),
    ],
  })
}

/** An unfinished request delays the shutdown by seconds; a second signal skips the wait. */
async function stopTwice(trial: Trial): Promise<void> {
  const server = await startServerAt(makeHome(trial, 'stopped-twice'))
  const { hostname, port } = new URL(server.url)
  const connection = await Bun.connect({ hostname, port: Number(port), socket: { data() {} } })
  connection.write(
    'POST /v1/otp/send HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{',
  )
  // A later request was answered, so the server has received this one.
  await callApi('GET', `${server.url}/v1/health`)
  process.kill(server.pid, 'SIGTERM')
  await server.waitForLog('shutting down')
  const exitedEarly = await Promise.race([server.exited, Promise.resolve(null)])
  const stopRequestedAt = performance.now()
  const exitCode = await server.stop()
  const tookMs = Math.round(performance.now() - stopRequestedAt)
  connection.end()
  trial.report({
    scenario: 'SIGTERM twice while a call does not end',
    guarantee: 'the second signal ends it at once, with exit code 143',
    figures: { ms: tookMs, 'exit code': exitCode },
    violations: [
      ...violationUnless(exitedEarly === null, 'the first signal had already ended it'),
      ...violationUnless(exitCode === 143, `it ended with ${exitCode}`),
      ...violationUnless(tookMs <= trial.allowMs(500), `it took ${tookMs} ms`),
    ],
  })
}
