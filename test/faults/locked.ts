import { join } from 'node:path'
import { Database } from 'bun:sqlite'
import { logIn } from '../helpers/webhook-client.ts'
import { countStatuses, send, unless, watchHealth, type Answer } from './calls.ts'
import type { Family, Trial } from './family.ts'
import { makeHome, startAt } from './server.ts'

/** Beside the load, on a machine that may do other work, too: what it took before the lock tells how much. */
const healthMsMax = (beforeMs: number) => Math.max(100, 3 * beforeMs)

export const locked: Family = {
  name: 'locked',
  about: 'the database is locked by another process',
  async run(trial) {
    await tryLock(trial, {
      tried: 'another process holds the database for 1.5 s under 50 sends a second',
      promised: 'no error, health answers at once',
      lockMs: 1_500,
      judge: (answers) =>
        unless(
          answers.every(({ status }) => status === 201),
          `answered ${countStatuses(answers)}`,
        ),
    })
    await tryLock(trial, {
      tried: 'another process does not let go of the database, 50 sends a second',
      promised: '503 with Retry-After after 3 s, health answers at once, and all is well again afterwards',
      lockMs: trial.short ? 4_000 : 8_000,
      judge: (answers) => {
        const refused = answers.filter(({ status }) => status === 503)
        const times = refused.map(({ ms }) => ms)
        return [
          ...unless(refused.length > 0, 'nothing was refused'),
          ...unless(
            answers.every(({ status }) => status === 201 || status === 503),
            `answered ${countStatuses(answers)}`,
          ),
          ...unless(
            refused.every(({ headers }) => headers.get('retry-after')),
            '503 without Retry-After',
          ),
          ...unless(Math.min(...times) >= 2_900, `refused after ${Math.min(...times)} ms already`),
          ...unless(
            Math.max(...times) <= 3_000 + trial.allowMs(1_000),
            `refused after ${Math.max(...times)} ms only`,
          ),
        ]
      },
    })
  },
}

type Lock = { tried: string; promised: string; lockMs: number; judge(answers: Answer[]): string[] }

async function tryLock(trial: Trial, { tried, promised, lockMs, judge }: Lock): Promise<void> {
  const at = makeHome(trial, `locked-${lockMs}`)
  const server = await startAt(at)
  const app = await (await logIn(server.url)).createApplication()
  for (let i = 0; i < 20; i++) await send(server.url, app)

  const stopFirstWatch = watchHealth(server.url)
  for (let i = 0; i < 50; i++) await Promise.all([send(server.url, app), Bun.sleep(20)])
  const before = await stopFirstWatch()

  const other = new Database(join(at.dataDir, 'otpd.db'))
  other.run('PRAGMA busy_timeout = 5000')
  other.run('BEGIN IMMEDIATE')
  const stopWatch = watchHealth(server.url)
  const calls: Promise<Answer>[] = []
  const freedAt = performance.now() + lockMs
  while (performance.now() < freedAt) {
    calls.push(send(server.url, app))
    await Bun.sleep(20)
  }
  other.run('ROLLBACK')
  other.close()
  const answers = await Promise.all(calls)
  const health = await stopWatch()
  const afterwards = await send(server.url, app)
  const exitCode = await server.stop()
  trial.report({
    tried,
    promised,
    figures: {
      answered: countStatuses(answers),
      'longest ms': Math.max(...answers.map(({ ms }) => ms)),
      'health asked': health.asked,
      'health p99 before ms': before.p99Ms,
      'health p99 ms': health.p99Ms,
      'health longest ms': health.longestMs,
    },
    broken: [
      ...judge(answers),
      ...unless(health.failed === 0, `health failed ${health.failed} times`),
      ...unless(health.p99Ms <= trial.allowMs(healthMsMax(before.p99Ms)), `health took ${health.p99Ms} ms`),
      ...unless(afterwards.status === 201, `afterwards a send was ${afterwards.status}`),
      ...unless(exitCode === 0, `it ended with ${exitCode}`),
    ],
  })
}
