import type { RunningServer } from '../helpers/binary.ts'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { violationUnless, waitUntil } from './calls.ts'
import { encodeRequest } from './connection.ts'
import type { FaultFamily, Trial } from './family.ts'
import { makeHome, startServerAt, type Home } from './server.ts'
import { fillWithAgedRequests, retentionEnv } from './soak-aged.ts'
import { createCallMix } from './soak-calls.ts'
import { createErrorCounter, startBackgroundTasks } from './soak-background-tasks.ts'
import { createEventReconciler, followLog, startSoakReceiver } from './soak-event-reconciler.ts'
import {
  createLatencyRecorder,
  samplesInWindow,
  takeSample,
  type Sample,
  type Window,
} from './soak-metrics.ts'
import { openPool } from './soak-pool.ts'
import { reportRetention, reportSamples, reportWindow } from './soak-report.ts'

const connections = 32
const applications = 8
const sampleMs = 10_000
const windows = 20
const shortMs = 10_000
const drainMsMax = 60_000

export const soak: FaultFamily = {
  name: 'soak',
  description: 'every kind of call at a constant rate, for an hour; `--minutes 0` is ten seconds',
  takesLong: true,
  counts: {
    minutes: { full: 60, short: 0 },
    rate: { full: 200, short: 200 },
    old: { full: 12_000, short: 0 },
  },
  async run(trial) {
    const serverHome = makeHome(trial, 'home')
    if (trial.count('old') > 0) await fillWithAgedRequests(trial, serverHome, trial.count('old'))
    const server = await startServerAt(serverHome, {
      ...retentionEnv,
      OTPD_GUARD_MODE: 'monitor',
      OTPD_SEND_PER_MINUTE: '10000',
      OTPD_VERIFY_PER_MINUTE: '10000',
    })
    try {
      await soakServer(trial, serverHome, server)
    } finally {
      await server.stop('SIGKILL')
    }
  },
}

async function soakServer(trial: Trial, serverHome: Home, server: RunningServer): Promise<void> {
  const durationMs = trial.count('minutes') * 60_000 || shortMs
  const rate = trial.count('rate')
  const webhookEvents = createEventReconciler()
  const streamEvents = createEventReconciler()
  const apps: TestApp[] = []
  const receiver = startSoakReceiver(apps, webhookEvents)
  let client = await logIn(server.url)
  const bearer = () => ({ authorization: `Bearer ${client.token}` })
  for (let i = 0; i <= applications; i++) {
    const app = await client.createApplication(`Soak ${i}`, i === applications ? 'live' : 'test')
    apps.push(app)
    await client.createEndpoint(app, `${receiver.url}${i}`, ['otp.sent', 'otp.verified'])
  }
  const live = apps.at(-1)
  if (!live) throw new Error('there is no application')
  const stream = followLog(server.url, bearer, streamEvents)
  await waitUntil(trial.allowMs(5_000), () => stream.count.opened > 0)

  const onEvent = (type: 'otp.sent' | 'otp.verified', requestId: string) => {
    webhookEvents.acknowledge(type, requestId)
    streamEvents.acknowledge(type, requestId)
  }
  const nextCall = createCallMix({ apps: apps.slice(0, -1), live, bearer, random: trial.random, onEvent })
  const pool = await openPool(server.url, connections)
  const latencies = createLatencyRecorder()
  const errorCounter = createErrorCounter()
  const makeCall = async (scheduledAt: number) => {
    const call = nextCall()
    const response = await pool.send(encodeRequest(call.method, call.path, call.headers, call.body))
    latencies.add(performance.now() - scheduledAt)
    errorCounter.check(call, response)
  }

  const backgroundTasks = await startBackgroundTasks(
    server.url,
    errorCounter,
    client,
    (fresh) => (client = fresh),
  )
  const startedAt = performance.now()
  const elapsedMs = () => performance.now() - startedAt
  const inFlight = new Set<Promise<void>>()
  const samples: Sample[] = []
  const windowMs = Math.max(durationMs / windows, 2_000)
  const everyMs = Math.min(sampleMs, windowMs / 4)
  let callCount = 0
  let window: Window = { fromMs: 0, toMs: windowMs }
  let waitingMax = 0

  while (elapsedMs() < durationMs) {
    // Open-loop load: every due call is made, however late the timer or the responses are.
    for (; callCount < (elapsedMs() / 1000) * rate; callCount++) {
      const task: Promise<void> = makeCall(startedAt + (callCount / rate) * 1000).finally(() =>
        inFlight.delete(task),
      )
      inFlight.add(task)
    }
    waitingMax = Math.max(waitingMax, pool.waiting())
    if (elapsedMs() >= (samples.length + 1) * everyMs) {
      samples.push(takeSample(server.pid, server.dataDir, (samples.length + 1) * everyMs))
    }
    if (elapsedMs() >= window.toMs + everyMs / 2) {
      reportWindow(
        trial,
        window,
        samplesInWindow(samples, window),
        latencies.take(),
        errorCounter.takeSummary(),
      )
      window = { fromMs: window.toMs, toMs: window.toMs + windowMs }
    }
    await Bun.sleep(5)
  }
  await Promise.all(inFlight)
  samples.push(takeSample(server.pid, server.dataDir, durationMs))
  reportWindow(trial, window, samplesInWindow(samples, window), latencies.take(), errorCounter.takeSummary())
  await backgroundTasks.stop()
  const hasAllArrived = () => webhookEvents.missing() === 0 && streamEvents.missing() === 0
  await waitUntil(drainMsMax, hasAllArrived)
  await stream.stop()
  pool.close()
  const exitCode = await server.stop()
  await receiver.stop()

  trial.report({
    scenario: `${callCount} calls in ${durationMs / 1000} s, due at fixed times; ${backgroundTasks.count.rotated} rotations`,
    guarantee: 'each call gets the expected response; no 5xx; exit code 0',
    figures: {
      'waited for a connection, at most': waitingMax,
      'times logged in': backgroundTasks.count.loggedIn,
    },
    violations: [
      ...violationUnless(errorCounter.total() === 0, `${errorCounter.total()} responses were unexpected`),
      ...violationUnless(exitCode === 0, `it ended with ${exitCode}`),
    ],
  })
  trial.report({
    scenario: `${webhookEvents.count.acknowledged} sends and verifications, their webhooks, and a log stream`,
    guarantee: 'each webhook arrives once and is signed; the stream has each entry once',
    figures: {
      webhooks: webhookEvents.count.arrived,
      entries: streamEvents.count.arrived,
      'times the log was opened': stream.count.opened,
    },
    violations: [
      ...violationUnless(webhookEvents.missing() === 0, `${webhookEvents.missing()} webhooks never arrived`),
      ...violationUnless(
        webhookEvents.surplus() === 0,
        `${webhookEvents.surplus()} webhooks arrived twice or without an event`,
      ),
      ...violationUnless(receiver.forged() === 0, `${receiver.forged()} webhooks were not signed`),
      ...violationUnless(streamEvents.missing() === 0, `${streamEvents.missing()} entries were not streamed`),
      ...violationUnless(
        streamEvents.surplus() === 0,
        `${streamEvents.surplus()} entries were streamed twice or without an event`,
      ),
      ...stream.violations,
    ],
  })
  reportSamples(trial, samples, durationMs)
  reportRetention(trial, serverHome, durationMs)
}
