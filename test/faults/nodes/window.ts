import type { TestApp, WebhookClient } from '../../helpers/webhook-client.ts'
import { send, violationUnless } from '../calls.ts'
import type { Trial } from '../family.ts'
import type { Cluster } from './cluster.ts'

const limit = 5
const windowMs = 60_000
const applications = 8
const everyMs = 400

type Admission = { startedAt: number; endedAt: number }

/** Asks all the time, and counts what was admitted in any minute of this process's clock. */
export async function watchWindow(
  trial: Trial,
  { cluster, client }: { cluster: Cluster; client: WebhookClient },
  seconds: number,
): Promise<void> {
  const endsAt = performance.now() + seconds * 1_000
  let calls = 0
  async function ask(app: TestApp): Promise<Admission[]> {
    const admissions: Admission[] = []
    while (performance.now() < endsAt) {
      const startedAt = performance.now()
      const { status } = await send(cluster.url, app)
      calls++
      if (status === 201) admissions.push({ startedAt, endedAt: performance.now() })
      await Bun.sleep(everyMs)
    }
    return admissions
  }
  const apps = await Promise.all(Array.from({ length: applications }, () => client.createApplication()))
  const byApp = await Promise.all(apps.map(ask))
  const spans = byApp.flatMap(shortestSpans)
  const shortest = Math.min(...spans)
  const fewest = Math.min(...byApp.map(({ length }) => length))
  trial.report({
    scenario: `${applications} applications ask ${seconds} s long, at nodes whose clocks are 5 s apart`,
    guarantee: `at most ${limit} sends are admitted in any 60 s`,
    figures: {
      calls,
      admitted: byApp.flat().length,
      'shortest span of 6 s': (shortest / 1_000).toFixed(2),
    },
    violations: [
      ...violationUnless(shortest >= windowMs, `${limit + 1} sends in ${(shortest / 1_000).toFixed(2)} s`),
      ...violationUnless(
        fewest >= limit * Math.floor(seconds / 65),
        `only ${fewest} of an application were admitted`,
      ),
    ],
  })
}

/** Measures how long each six admissions in a row took at most: from the first call's beginning to the last one's end. */
const shortestSpans = (admissions: readonly Admission[]): number[] =>
  admissions.slice(limit).map(({ endedAt }, i) => endedAt - (admissions[i]?.startedAt ?? -Infinity))
