import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { median, percentile } from '../bench/stats.ts'
import { residentMb } from './misbehaviours.ts'

export type Sample = {
  /** Since the load began. */
  atMs: number
  memoryMb: number
  /** Of that: pages of files, the program's own foremost. */
  mappedMb: number
  files: number
  walMb: number
  databaseMb: number
}

export type Window = { fromMs: number; toMs: number }

const sizeMb = (path: string) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) / 2 ** 20

/** What a server holds at this moment. @param atMs since the load began */
export function takeSample(pid: number, dataDir: string, atMs: number): Sample {
  const database = join(dataDir, 'otpd.db')
  return {
    atMs,
    memoryMb: residentMb(pid),
    mappedMb: Number(/RssFile:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
    files: readdirSync(`/proc/${pid}/fd`).length,
    walMb: sizeMb(`${database}-wal`),
    databaseMb: sizeMb(database),
  }
}

export const samplesInWindow = (samples: readonly Sample[], { fromMs, toMs }: Window): Sample[] =>
  samples.filter(({ atMs }) => atMs > fromMs && atMs <= toMs)

/** How calls were answered since the last time it was asked. */
export function createLatencyRecorder() {
  let latencies: number[] = []
  return {
    add: (ms: number) => void latencies.push(ms),
    take() {
      const sorted = latencies.toSorted((a, b) => a - b)
      latencies = []
      return { answers: sorted.length, p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) }
    },
  }
}

/**
 * From the first sixth after the warm-up, itself a sixth of the run, to the last sixth: of an hour, the second ten
 * minutes and the last ten. Medians, so that no single sample decides.
 *
 * @param value of a sample
 */
export function medianGrowth(samples: readonly Sample[], durationMs: number, value: (one: Sample) => number) {
  const medianBetween = (fromMs: number, toMs: number) =>
    median(samplesInWindow(samples, { fromMs, toMs }).map(value))
  const sixth = durationMs / 6
  return { first: medianBetween(sixth, 2 * sixth), last: medianBetween(5 * sixth, durationMs) }
}
