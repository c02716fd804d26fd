import { violationUnless } from './calls.ts'
import type { Trial } from './family.ts'
import type { Home } from './server.ts'
import { countOverdue, retention } from './soak-aged.ts'
import { median } from '../bench/stats.ts'
import { medianGrowth, type createLatencyRecorder, type Sample, type Window } from './soak-metrics.ts'

const growthMax = 0.1
const growthMaxBeforeSettled = 0.5
/** Until then the runtime is still compiling code and filling caches, so growth is not judged. */
const settledMs = 30 * 60_000
/** Range for descriptors of short-lived connections: two to each of nine endpoints, and those of one-time callers. */
const filesBandMax = 24
const filesDriftMax = 4
const walMbMax = 64
/** The first purge runs ten minutes after the start, and overdue rows may remain for 15 minutes. */
const purgedMs = 30 * 60_000

const seconds = (ms: number) => Math.round(ms / 1000)

const formatRange = (values: readonly number[]) => `${Math.min(...values)}–${Math.max(...values)}`

const formatMedian = (samples: readonly Sample[], value: (sample: Sample) => number) =>
  median(samples.map(value)).toFixed(1)

/** Reports a time window of the run. @param errors unexpected responses in the window */
export function reportWindow(
  trial: Trial,
  { fromMs, toMs }: Window,
  samples: readonly Sample[],
  latencies: ReturnType<ReturnType<typeof createLatencyRecorder>['take']>,
  errors: string[],
): void {
  trial.report({
    scenario: `seconds ${seconds(fromMs)} to ${seconds(toMs)}, ${samples.length} samples`,
    guarantee: 'no unexpected response',
    figures: {
      answers: latencies.answers,
      'p50 ms': latencies.p50Ms.toFixed(1),
      'p99 ms': latencies.p99Ms.toFixed(1),
      'memory MB': formatMedian(samples, (sample) => sample.memoryMb),
      'of it in files MB': formatMedian(samples, (sample) => sample.mappedMb),
      descriptors: formatRange(samples.map((sample) => sample.files)),
      'WAL MB': formatMedian(samples, (sample) => sample.walMb),
      'database MB': formatMedian(samples, (sample) => sample.databaseMb),
    },
    violations: errors,
  })
}

/** Checks memory, descriptors and file sizes over the whole run. */
export function reportSamples(trial: Trial, samples: readonly Sample[], durationMs: number): void {
  const isLong = durationMs >= settledMs
  const growthLimit = isLong ? growthMax : growthMaxBeforeSettled
  const memory = medianGrowth(samples, durationMs, (sample) => sample.memoryMb)
  const growth = memory.last / memory.first - 1
  trial.report({
    scenario: 'the median memory of the last sixth of the run against that of its second sixth',
    guarantee: `under ${growthLimit * 100} % more`,
    figures: {
      'second sixth MB': memory.first.toFixed(1),
      'last sixth MB': memory.last.toFixed(1),
      'growth %': (growth * 100).toFixed(1),
    },
    violations: violationUnless(growth < growthLimit, `${(growth * 100).toFixed(1)} % more`),
  })

  const afterWarmUp = samples.filter(({ atMs }) => atMs > durationMs / 6)
  const counts = afterWarmUp.map((sample) => sample.files)
  const files = medianGrowth(samples, durationMs, (sample) => sample.files)
  // With few samples, the median of short-lived connections is not stable.
  const driftMax = isLong ? filesDriftMax : filesBandMax
  const walMb = Math.max(...samples.map((sample) => sample.walMb))
  trial.report({
    scenario: `descriptors and the log of the database, ${samples.length} samples`,
    guarantee: `after the first sixth descriptors stay within ${filesBandMax}, their medians within ${driftMax}; the log is under ${walMbMax} MB`,
    figures: {
      'descriptors, second and last sixth': `${files.first} → ${files.last}`,
      'fewest and most': formatRange(counts),
      'log MB, at most': walMb.toFixed(1),
    },
    violations: [
      ...violationUnless(
        Math.max(...counts) - Math.min(...counts) <= filesBandMax,
        `${formatRange(counts)} descriptors`,
      ),
      ...violationUnless(
        Math.abs(files.last - files.first) <= driftMax,
        `${files.first} → ${files.last} descriptors`,
      ),
      ...violationUnless(walMb < walMbMax, `the log had ${walMb.toFixed(1)} MB`),
    ],
  })
}

/** Checks that rows that became overdue during the run were purged. Skipped if the run was too short for a purge. */
export function reportRetention(trial: Trial, serverHome: Home, durationMs: number): void {
  if (durationMs < purgedMs || trial.count('old') === 0) return
  const { requests, phones } = countOverdue(serverHome)
  trial.report({
    scenario: `requests that reached ${retention.requestDays} days during the run, and phones that reached ${retention.phoneDays}`,
    guarantee: 'the purges every ten minutes have deleted the requests and pseudonymized the phones',
    figures: { 'overdue requests': requests, 'overdue phones': phones },
    violations: violationUnless(
      requests === 0 && phones === 0,
      `${requests} requests and ${phones} phones are overdue`,
    ),
  })
}
