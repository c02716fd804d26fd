import { chooseProviders } from '../../src/domain/routing/choice.ts'
import { createRouteStatistics } from '../../src/domain/routing/statistics.ts'
import { secondMs } from '../../src/shared/durations.ts'
import { seededRandom } from '../helpers/seeded-random.ts'
import type { BenchCase } from './bench-case.ts'
import { machineCpuSeconds } from './machine.ts'
import type { Sample } from './service.ts'

const providers = ['ayr', 'bel', 'cor', 'dun', 'eck', 'fal']
const countries = ['IN', 'US', 'BR', 'ID', 'DE', 'GB', 'FR', 'TR', 'MX', 'NG']
/** Calls between two looks at the clock. */
const batch = 10_000

/** The part of a send and of its outcome that the strategy of a route adds, in the process of the bench. */
export const routeChoice: BenchCase = {
  rows: {
    'route-choice': 'choosing between six providers, without a server',
    'route-outcome': 'counting an outcome, without a server',
  },
  run({ loadSettings }, isWanted) {
    const statistics = createRouteStatistics()
    const random = seededRandom(1)
    const now = Date.UTC(2026, 0, 1)
    const cellAt = (index: number) => ({
      provider: providers[index % providers.length] ?? '',
      channel: 'sms' as const,
      country: countries[Math.floor(index / providers.length) % countries.length] ?? '',
    })
    const recordOutcome = (index: number) => {
      const isVerified = random() < 0.8
      statistics.recordSent(cellAt(index), now + index)
      const outcome = { isVerified, isKnown: index % 2 === 0, sentAt: now + index }
      statistics.recordOutcome(cellAt(index), outcome, now + index + secondMs)
    }
    const choose = (index: number) => {
      const country = countries[index % countries.length] ?? ''
      const candidates = providers.map((provider, position) => ({
        provider,
        price: 30_000 + 1_000 * position,
        isOpen: false,
        wasTried: false,
      }))
      const question = { strategy: 'cost', channel: 'sms', country, candidates } as const
      return chooseProviders(question, (cell) => statistics.estimate(cell, now + index), random)
    }
    // Enough outcomes that each estimate is that of the country.
    for (let index = 0; index < 60_000; index++) recordOutcome(index)
    const samples: Record<string, Sample> = {}
    if (isWanted('route-choice')) samples['route-choice'] = measure(choose, loadSettings.seconds)
    if (isWanted('route-outcome')) samples['route-outcome'] = measure(recordOutcome, loadSettings.seconds)
    return Promise.resolve(samples)
  },
}

/** Calls a function for some seconds, after a second of warm-up. */
function measure(call: (index: number) => unknown, seconds: number): Sample {
  runFor(call, 1)
  const before = { own: process.cpuUsage(), machine: machineCpuSeconds(), at: performance.now() }
  const calls = runFor(call, seconds)
  const { user, system } = process.cpuUsage(before.own)
  const elapsedSeconds = (performance.now() - before.at) / 1000
  const ownSeconds = (user + system) / 1e6
  return {
    responses: calls,
    requestsPerSecond: calls / elapsedSeconds,
    p50Ms: NaN,
    p99Ms: NaN,
    cpuMicros: (user + system) / calls,
    memoryMegabytes: NaN,
    otherCores: Math.max(0, (machineCpuSeconds() - before.machine - ownSeconds) / elapsedSeconds),
  }
}

function runFor(call: (index: number) => unknown, seconds: number): number {
  const endAt = performance.now() + seconds * 1000
  let calls = 0
  while (performance.now() < endAt) for (let index = 0; index < batch; index++) call(calls++)
  return calls
}
