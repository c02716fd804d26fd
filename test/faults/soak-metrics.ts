import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { median, percentile } from '../bench/stats.ts'
import { residentMb } from './misbehaving-server.ts'

export type Sample = {
  /** Milliseconds since the load began. */
  atMs: number
  memoryMb: number
  /** Share of `memoryMb` in mapped files, mostly the executable. */
  mappedMb: number
  files: number
  walMb: number
  databaseMb: number
}

export type Window = { fromMs: number; toMs: number }

const sizeMb = (path: string) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) / 2 ** 20

/** Measures the resources of a server. @param atMs milliseconds since the load began */
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

/** Records latencies and summarizes those since the last summary. */
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
 * Compares the second sixth of a run (the first is the warm-up) with the last: in an hour, the second ten minutes with
 * the last ten. Uses medians, so that no single sample decides.
 *
 * @param value selects the value of a sample
 */
export function medianGrowth(samples: readonly Sample[], durationMs: number, value: (one: Sample) => number) {
  const medianBetween = (fromMs: number, toMs: number) =>
    median(samplesInWindow(samples, { fromMs, toMs }).map(value))
  const sixth = durationMs / 6
  return { first: medianBetween(sixth, 2 * sixth), last: medianBetween(5 * sixth, durationMs) }
}
