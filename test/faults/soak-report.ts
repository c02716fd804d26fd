import { unless } from './calls.ts'
import type { Trial } from './family.ts'
import type { Home } from './server.ts'
import { countOverdue, retention } from './soak-aged.ts'
import { median } from '../bench/stats.ts'
import { growthOf, type createTimes, type Sample, type Window } from './soak-gauge.ts'

const growthMax = 0.1
const growthMaxBeforeSettled = 0.5
/** A runtime that has answered for minutes only has not compiled all that it will, nor filled its caches. */
const settledMs = 30 * 60_000
/** Connections to receivers come and go: two to each of nine endpoints, beside those of callers who come once. */
const filesBandMax = 24
const filesDriftMax = 4
const walMbMax = 64
/** The first purge is ten minutes after the start, and what it finds may lie there for fifteen. */
const purgedMs = 30 * 60_000

const seconds = (ms: number) => Math.round(ms / 1000)

const range = (values: readonly number[]) => `${Math.min(...values)}–${Math.max(...values)}`

const middle = (samples: readonly Sample[], value: (one: Sample) => number) =>
  median(samples.map(value)).toFixed(1)

/** @param errors of the window */
export function reportWindow(
  trial: Trial,
  { fromMs, toMs }: Window,
  samples: readonly Sample[],
  times: ReturnType<ReturnType<typeof createTimes>['take']>,
  errors: string[],
): void {
  trial.report({
    tried: `seconds ${seconds(fromMs)} to ${seconds(toMs)}, ${samples.length} samples`,
    promised: 'no answer but those expected',
    figures: {
      answers: times.answers,
      'p50 ms': times.p50Ms.toFixed(1),
      'p99 ms': times.p99Ms.toFixed(1),
      'memory MB': middle(samples, (one) => one.memoryMb),
      'of it in files MB': middle(samples, (one) => one.mappedMb),
      descriptors: range(samples.map((one) => one.files)),
      'WAL MB': middle(samples, (one) => one.walMb),
      'database MB': middle(samples, (one) => one.databaseMb),
    },
    broken: errors,
  })
}

/** What the samples of the whole run say of its promises. */
export function reportSamples(trial: Trial, samples: readonly Sample[], durationMs: number): void {
  const isLong = durationMs >= settledMs
  const limit = isLong ? growthMax : growthMaxBeforeSettled
  const memory = growthOf(samples, durationMs, (one) => one.memoryMb)
  const growth = memory.last / memory.first - 1
  trial.report({
    tried: 'the median memory of the last sixth of the run against that of its second sixth',
    promised: `under ${limit * 100} % more`,
    figures: {
      'second sixth MB': memory.first.toFixed(1),
      'last sixth MB': memory.last.toFixed(1),
      'growth %': (growth * 100).toFixed(1),
    },
    broken: unless(growth < limit, `${(growth * 100).toFixed(1)} % more`),
  })

  const warm = samples.filter(({ atMs }) => atMs > durationMs / 6)
  const counts = warm.map((one) => one.files)
  const files = growthOf(samples, durationMs, (one) => one.files)
  // Few samples of connections that come and go have no steady middle.
  const driftMax = isLong ? filesDriftMax : filesBandMax
  const walMb = Math.max(...samples.map((one) => one.walMb))
  trial.report({
    tried: `descriptors and the log of the database, ${samples.length} samples`,
    promised: `after the first sixth descriptors stay within ${filesBandMax}, their medians within ${driftMax}; the log is under ${walMbMax} MB`,
    figures: {
      'descriptors, second and last sixth': `${files.first} → ${files.last}`,
      'fewest and most': range(counts),
      'log MB, at most': walMb.toFixed(1),
    },
    broken: [
      ...unless(Math.max(...counts) - Math.min(...counts) <= filesBandMax, `${range(counts)} descriptors`),
      ...unless(Math.abs(files.last - files.first) <= driftMax, `${files.first} → ${files.last} descriptors`),
      ...unless(walMb < walMbMax, `the log had ${walMb.toFixed(1)} MB`),
    ],
  })
}

/** Whether what came of age while the server ran is gone; nothing where the run was too short for a purge. */
export function reportRetention(trial: Trial, at: Home, durationMs: number): void {
  if (durationMs < purgedMs || trial.count('old') === 0) return
  const { requests, phones } = countOverdue(at)
  trial.report({
    tried: `requests that became ${retention.requestDays} days old in these minutes, and phones ${retention.phoneDays}`,
    promised: 'the purges of every ten minutes have removed the ones and forgotten the others',
    figures: { 'overdue requests': requests, 'overdue phones': phones },
    broken: unless(requests === 0 && phones === 0, `${requests} requests and ${phones} phones are overdue`),
  })
}
