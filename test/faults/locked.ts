import { join } from 'node:path'
import { Database } from 'bun:sqlite'
import { logIn } from '../helpers/webhook-client.ts'
import { countStatuses, send, violationUnless, watchHealth, type CallResult } from './calls.ts'
import type { FaultFamily, Trial } from './family.ts'
import { makeHome, startServerAt } from './server.ts'

/** Limit for health checks under load, relative to the time before the lock, because the machine may be busy. */
const healthMsMax = (beforeMs: number) => Math.max(100, 3 * beforeMs)

export const locked: FaultFamily = {
  name: 'locked',
  description: 'the database is locked by another process',
  async run(trial) {
    await tryLock(trial, {
      scenario: 'another process holds the database for 1.5 s under 50 sends a second',
      guarantee: 'no error, health answers at once',
      lockMs: 1_500,
      check: (responses) =>
        violationUnless(
          responses.every(({ status }) => status === 201),
          `answered ${countStatuses(responses)}`,
        ),
    })
    await tryLock(trial, {
      scenario: 'another process keeps the database locked, 50 sends a second',
      guarantee: '503 with Retry-After after 3 s, health answers at once, full recovery afterwards',
      lockMs: trial.short ? 4_000 : 8_000,
      check: (responses) => {
        const refused = responses.filter(({ status }) => status === 503)
        const times = refused.map(({ ms }) => ms)
        return [
          ...violationUnless(refused.length > 0, 'nothing was refused'),
          ...violationUnless(
            responses.every(({ status }) => status === 201 || status === 503),
            `answered ${countStatuses(responses)}`,
          ),
          ...violationUnless(
            refused.every(({ headers }) => headers.get('retry-after')),
            '503 without Retry-After',
          ),
          ...violationUnless(
            Math.min(...times) >= 2_900,
            `refused too early, after ${Math.min(...times)} ms`,
          ),
          ...violationUnless(
            Math.max(...times) <= 3_000 + trial.allowMs(1_000),
            `refused too late, after ${Math.max(...times)} ms`,
          ),
        ]
      },
    })
  },
}

type Lock = { scenario: string; guarantee: string; lockMs: number; check(responses: CallResult[]): string[] }

async function tryLock(trial: Trial, { scenario, guarantee, lockMs, check }: Lock): Promise<void> {
  const serverHome = makeHome(trial, `locked-${lockMs}`)
  const server = await startServerAt(serverHome)
  const app = await (await logIn(server.url)).createApplication()
  for (let i = 0; i < 20; i++) await send(server.url, app)

  const stopFirstWatch = watchHealth(server.url)
  for (let i = 0; i < 50; i++) await Promise.all([send(server.url, app), Bun.sleep(20)])
  const healthBefore = await stopFirstWatch()

  const lockHolder = new Database(join(serverHome.dataDir, 'otpd.db'))
  lockHolder.run('PRAGMA busy_timeout = 5000')
  lockHolder.run('BEGIN IMMEDIATE')
  const stopWatch = watchHealth(server.url)
  const calls: Promise<CallResult>[] = []
  const freedAt = performance.now() + lockMs
  while (performance.now() < freedAt) {
    calls.push(send(server.url, app))
    await Bun.sleep(20)
  }
  lockHolder.run('ROLLBACK')
  lockHolder.close()
  const responses = await Promise.all(calls)
  const health = await stopWatch()
  const afterwards = await send(server.url, app)
  const exitCode = await server.stop()
  trial.report({
    scenario,
    guarantee,
    figures: {
      answered: countStatuses(responses),
      'longest ms': Math.max(...responses.map(({ ms }) => ms)),
      'health asked': health.requests,
      'health p99 before ms': healthBefore.p99Ms,
      'health p99 ms': health.p99Ms,
      'health longest ms': health.longestMs,
    },
    violations: [
      ...check(responses),
      ...violationUnless(health.failed === 0, `health failed ${health.failed} times`),
      ...violationUnless(
        health.p99Ms <= trial.allowMs(healthMsMax(healthBefore.p99Ms)),
        `health took ${health.p99Ms} ms`,
      ),
      ...violationUnless(afterwards.status === 201, `afterwards a send was ${afterwards.status}`),
      ...violationUnless(exitCode === 0, `it ended with ${exitCode}`),
    ],
  })
}
