import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createProcessClock, type ProcessClock } from '../../helpers/process-clock.ts'
import { startPostgresServer } from '../../helpers/postgres-server.ts'
import { dayMs } from '../../../src/shared/durations.ts'
import { logIn, type TestApp } from '../../helpers/webhook-client.ts'
import { pick } from '../../helpers/seeded-random.ts'
import { callApi, countStatuses, verify, violationUnless, waitUntil, type CallResult } from '../calls.ts'
import type { Trial } from '../family.ts'
import { defineNodeFamily, startCluster, type Cluster } from './cluster.ts'
import { startMessageServer } from './message-server.ts'
import { isExpected } from './node-load.ts'

const callers = 9
/** Few, so that calls at all nodes meet on the same records. */
const phones = Array.from({ length: 60 }, (_, index) => `+1415555${String(1_000 + index)}`)
const eraseEveryMs = 2_000
const passTimeEveryMs = 200
/** Longer than it takes until the next purge, which at the end of a day finds that the leader's lease has run out. */
const passDayEveryMs = 90_000
/** Purges delete requests and entries that are a day old, and redact phones. */
const retention = {
  OTPD_RETENTION_PHONE_DAYS: '1',
  OTPD_RETENTION_LOG_DAYS: '1',
  OTPD_RETENTION_REQUEST_DAYS: '1',
}

/** A request that later calls verify, resend or cancel. */
type Sent = { app: TestApp; requestId: string; code: string | undefined }

/** State that the callers share. `token` is replaced when a day passes. */
type Mix = { apps: readonly TestApp[]; token: string; isOver(): boolean }

export const mix = defineNodeFamily({
  name: 'nodes-mix',
  description:
    'every call on the same phones at three nodes, with webhooks, the guard, retention, and people who are erased',
  counts: { 'node-mix-seconds': { full: 600, short: 0 } },
  async run(trial) {
    const seconds = trial.count('node-mix-seconds')
    if (seconds === 0) return
    const messages = startMessageServer()
    const receiver = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('ok') })
    // The database's user reads it too.
    const clockFolder = mkdtempSync(join(tmpdir(), 'otpd-clock-'))
    chmodSync(clockFolder, 0o755)
    const clock = createProcessClock(clockFolder)
    const cluster = await startCluster(trial, {
      postgres: await startPostgresServer({}, { env: clock.env }),
      env: { OTPD_GUARD_MODE: 'enforce', ...retention, ...clock.env, ...messages.env },
      toml: messages.toml,
    })
    try {
      const client = await logIn(cluster.url)
      const apps: TestApp[] = []
      for (const environment of ['live', 'test', 'test', 'test'] as const) {
        const app = await client.createApplication(`Application ${apps.length}`, environment)
        await client.createEndpoint(app, receiver.url.href, ['otp.sent', 'otp.verified', 'otp.canceled'])
        apps.push(app)
      }
      const until = performance.now() + seconds * 1_000
      const shared: Mix = { apps, token: client.token, isOver: () => performance.now() > until }
      const [erased, days, ...results] = await Promise.all([
        erase(trial, cluster, shared),
        passDays(cluster, clock, shared),
        ...Array.from({ length: callers }, () => call(trial, cluster, shared)),
      ])
      await report(trial, cluster, { seconds, erased, days, results: results.flat() })
    } finally {
      await cluster.stop()
      await receiver.stop(true)
      messages.stop()
      clock.close()
      rmSync(clockFolder, { recursive: true, force: true })
    }
  },
})

/** Makes random calls at random nodes, one after the other. */
async function call(trial: Trial, { nodes }: Cluster, mix: Mix): Promise<CallResult[]> {
  const results: CallResult[] = []
  const sent: Sent[] = []
  while (!mix.isOver()) {
    const { url } = pick(nodes, trial.random)
    const chance = trial.random()
    const target = sent[Math.floor(trial.random() * sent.length)]
    if (!target || chance < 0.4) {
      const app = pick(mix.apps, trial.random)
      const clientIp = `198.51.100.${Math.floor(trial.random() * 40)}`
      const body = { phone: pick(phones, trial.random), clientIp }
      const { headers } = app
      const result = await callApi('POST', `${url}/v1/otp/send`, { headers, body })
      results.push(result)
      if (result.status !== 201) continue
      const { requestId, code } = result.data
      sent.unshift({ app, requestId: String(requestId), code: typeof code === 'string' ? code : undefined })
      sent.length = Math.min(sent.length, 10)
    } else if (chance < 0.7) {
      const code = trial.random() < 0.7 ? target.code : '000000'
      results.push(await verify(url, target.app, target.requestId, code ?? '000000'))
    } else if (chance < 0.9) {
      const { headers } = target.app
      const body = { requestId: target.requestId }
      results.push(
        await callApi('POST', `${url}/v1/otp/${chance < 0.8 ? 'resend' : 'cancel'}`, { headers, body }),
      )
    } else {
      const headers = { authorization: `Bearer ${mix.token}` }
      const path = pick(
        ['otp?limit=20', 'logs?limit=20', 'users?limit=20', 'analytics/summary'],
        trial.random,
      )
      results.push(await callApi('GET', `${url}/v1/${path}`, { headers }))
    }
  }
  return results
}

/** Erases people while they are sent codes. @returns how many; as a call may be, an erasure may be refused for now */
async function erase(trial: Trial, { nodes }: Cluster, { isOver }: Mix): Promise<number> {
  let erased = 0
  while (!isOver()) {
    await Bun.sleep(eraseEveryMs)
    const command = ['admin', 'erase', pick(phones, trial.random), '--yes']
    await pick(nodes, trial.random)
      .runHostCommand(command)
      .then(
        () => erased++,
        () => {},
      )
  }
  return erased
}

/**
 * Lets time run ten times as fast at the nodes and at the database, so that the leader purges every minute, and a day pass
 * now and then. Not faster, or the leader would lose its lease before each purge.
 *
 * @returns how many days have passed
 */
async function passDays({ url }: Cluster, clock: ProcessClock, mix: Mix): Promise<number> {
  const startedAt = performance.now()
  let days = 0
  while (!mix.isOver()) {
    await Bun.sleep(passTimeEveryMs)
    clock.advance(9 * passTimeEveryMs)
    if (performance.now() - startedAt < (days + 1) * passDayEveryMs) continue
    days++
    clock.advance(dayMs)
    await waitUntil(10_000, async () => (await callApi('GET', `${url}/v1/health/ready`)).status === 200)
    mix.token = (await logIn(url)).token
  }
  return days
}

async function report(
  trial: Trial,
  { postgres }: Cluster,
  run: { seconds: number; erased: number; days: number; results: CallResult[] },
) {
  const { seconds, erased, days, results } = run
  // PostgreSQL's own count, of all but the last second.
  await Bun.sleep(1_500)
  const [row] = await postgres.query<{ count: number }>(
    'select sum(deadlocks)::int as count from pg_stat_database',
  )
  const [deliveries] = await postgres.query<{ count: number }>(
    "select count(*)::int as count from webhook_deliveries where status = 'delivered'",
    'otpd',
  )
  const acknowledged = results.filter(({ status, data }) => status === 201 && 'requestId' in data).length
  const [requests] = await postgres.query<{ count: number }>(
    'select count(*)::int as count from otp_requests',
  )
  const unexpected = results.filter((result) => !isExpected(result))
  trial.report({
    scenario: `${callers} callers at three nodes, ${phones.length} phones, ${seconds} s`,
    guarantee: 'no transactions wait for each other in a ring, and every answer is 2xx, 4xx or 503',
    figures: {
      answers: countStatuses(results),
      'phones erased': erased,
      'days passed': days,
      'requests sent and left': `${acknowledged} → ${requests?.count}`,
      'webhooks delivered': deliveries?.count ?? 0,
      deadlocks: row?.count ?? -1,
    },
    violations: [
      ...violationUnless(row?.count === 0, `${row?.count} deadlocks`),
      ...violationUnless(unexpected.length === 0, `unexpected answers: ${countStatuses(unexpected)}`),
      ...violationUnless((deliveries?.count ?? 0) > 0, 'no webhook was delivered'),
      ...violationUnless((requests?.count ?? 0) < acknowledged, 'no old request was deleted'),
      ...violationUnless(erased > 0, 'no phone was erased'),
    ],
  })
}
