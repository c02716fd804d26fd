import type { RunningServer } from '../helpers/binary.ts'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { unless, within } from './calls.ts'
import { encodeCall } from './connection.ts'
import type { Family, Trial } from './family.ts'
import { makeHome, startAt, type Home } from './server.ts'
import { fillWithOld, retentionEnv } from './soak-aged.ts'
import { createMix } from './soak-calls.ts'
import { createErrors, startChores } from './soak-chores.ts'
import { createPairs, readStream, startSoakReceiver } from './soak-events.ts'
import { createTimes, samplesOf, takeSample, type Sample, type Window } from './soak-gauge.ts'
import { openPool } from './soak-pool.ts'
import { reportRetention, reportSamples, reportWindow } from './soak-report.ts'

const connections = 32
const applications = 8
const sampleMs = 10_000
const windows = 20
const shortMs = 10_000
const drainMsMax = 60_000

export const soak: Family = {
  name: 'soak',
  about: 'every kind of call at a constant rate, for an hour; `--minutes 0` is ten seconds',
  takesLong: true,
  counts: {
    minutes: { full: 60, short: 0 },
    rate: { full: 200, short: 200 },
    old: { full: 12_000, short: 0 },
  },
  async run(trial) {
    const at = makeHome(trial, 'home')
    if (trial.count('old') > 0) await fillWithOld(trial, at, trial.count('old'))
    const server = await startAt(at, {
      ...retentionEnv,
      OTPD_GUARD_MODE: 'monitor',
      OTPD_SEND_PER_MINUTE: '10000',
      OTPD_VERIFY_PER_MINUTE: '10000',
    })
    try {
      await soakServer(trial, at, server)
    } finally {
      await server.stop('SIGKILL')
    }
  },
}

async function soakServer(trial: Trial, at: Home, server: RunningServer): Promise<void> {
  const durationMs = trial.count('minutes') * 60_000 || shortMs
  const rate = trial.count('rate')
  const sent = createPairs()
  const streamed = createPairs()
  const apps: TestApp[] = []
  const receiver = startSoakReceiver(apps, sent)
  let client = await logIn(server.url)
  const bearer = () => ({ authorization: `Bearer ${client.token}` })
  for (let i = 0; i <= applications; i++) {
    const app = await client.createApplication(`Soak ${i}`, i === applications ? 'live' : 'test')
    apps.push(app)
    await client.createEndpoint(app, `${receiver.url}${i}`, ['otp.sent', 'otp.verified'])
  }
  const live = apps.at(-1)
  if (!live) throw new Error('there is no application')
  const stream = readStream(server.url, bearer, streamed)
  await within(trial.allowMs(5_000), () => stream.count.opened > 0)

  const happened = (type: 'otp.sent' | 'otp.verified', requestId: string) => {
    sent.tell(type, requestId)
    streamed.tell(type, requestId)
  }
  const next = createMix({ apps: apps.slice(0, -1), live, bearer, random: trial.random, happened })
  const pool = await openPool(server.url, connections)
  const times = createTimes()
  const errors = createErrors()
  const ask = async (dueAt: number) => {
    const call = next()
    const answer = await pool.ask(encodeCall(call.method, call.path, call.headers, call.body))
    times.add(performance.now() - dueAt)
    errors.judge(call, answer)
  }

  const chores = await startChores(server.url, errors, client, (fresh) => (client = fresh))
  const startedAt = performance.now()
  const since = () => performance.now() - startedAt
  const underWay = new Set<Promise<void>>()
  const samples: Sample[] = []
  const windowMs = Math.max(durationMs / windows, 2_000)
  const everyMs = Math.min(sampleMs, windowMs / 4)
  let made = 0
  let window: Window = { fromMs: 0, toMs: windowMs }
  let waitingMax = 0

  while (since() < durationMs) {
    // However late the timer or the answers: what is due is called.
    for (; made < (since() / 1000) * rate; made++) {
      const one: Promise<void> = ask(startedAt + (made / rate) * 1000).finally(() => underWay.delete(one))
      underWay.add(one)
    }
    waitingMax = Math.max(waitingMax, pool.waiting())
    if (since() >= (samples.length + 1) * everyMs) {
      samples.push(takeSample(server.pid, server.dataDir, (samples.length + 1) * everyMs))
    }
    if (since() >= window.toMs + everyMs / 2) {
      reportWindow(trial, window, samplesOf(samples, window), times.take(), errors.take())
      window = { fromMs: window.toMs, toMs: window.toMs + windowMs }
    }
    await Bun.sleep(5)
  }
  await Promise.all(underWay)
  samples.push(takeSample(server.pid, server.dataDir, durationMs))
  reportWindow(trial, window, samplesOf(samples, window), times.take(), errors.take())
  await chores.stop()
  const hasArrived = () => sent.missing() === 0 && streamed.missing() === 0
  await within(drainMsMax, hasArrived)
  await stream.stop()
  pool.close()
  const exitCode = await server.stop()
  await receiver.stop()

  trial.report({
    tried: `${made} calls in ${durationMs / 1000} s, due at fixed times; ${chores.count.rotated} rotations`,
    promised: 'each is answered as its kind is; no 5xx; it ends with 0',
    figures: { 'waited for a connection, at most': waitingMax, 'times logged in': chores.count.loggedIn },
    broken: [
      ...unless(errors.total() === 0, `${errors.total()} answers were others`),
      ...unless(exitCode === 0, `it ended with ${exitCode}`),
    ],
  })
  trial.report({
    tried: `${sent.count.told} sends and verifications, their webhooks, and a reader of the log`,
    promised: 'each arrives, signed, once; the log has each, once',
    figures: {
      webhooks: sent.count.arrived,
      entries: streamed.count.arrived,
      'times the log was opened': stream.count.opened,
    },
    broken: [
      ...unless(sent.missing() === 0, `${sent.missing()} webhooks never came`),
      ...unless(sent.surplus() === 0, `${sent.surplus()} webhooks came twice or of nothing`),
      ...unless(receiver.forged() === 0, `${receiver.forged()} webhooks were not signed`),
      ...unless(streamed.missing() === 0, `${streamed.missing()} entries were not streamed`),
      ...unless(streamed.surplus() === 0, `${streamed.surplus()} entries were streamed twice or of nothing`),
      ...stream.broken,
    ],
  })
  reportSamples(trial, samples, durationMs)
  reportRetention(trial, at, durationMs)
}
