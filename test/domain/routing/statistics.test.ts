import { describe, expect, test } from 'bun:test'
import type { RouteCell } from '../../../src/domain/model/route-choice.ts'
import { createRouteStatistics, type RouteStatistics } from '../../../src/domain/routing/statistics.ts'
import { dayMs, hourMs, secondMs } from '../../../src/shared/durations.ts'

const now = Date.UTC(2026, 10, 1)
const cell = (provider: string, country: string): RouteCell => ({ provider, channel: 'sms', country })

/** Records outcomes, and spreads the verified ones evenly. */
function record(
  statistics: RouteStatistics,
  key: RouteCell,
  count: number,
  share: number,
  at = now,
  isKnown = false,
) {
  for (let index = 0; index < count; index++) {
    const isVerified = Math.floor((index + 1) * share) > Math.floor(index * share)
    statistics.recordOutcome(key, { isVerified, isKnown, sentAt: at }, at)
  }
}

describe('an estimate', () => {
  test('is based on 50 outcomes of the country, or else also on those of its region, the provider, and the others', () => {
    const statistics = createRouteStatistics()
    const estimate = (provider: string, country: string) => statistics.estimate(cell(provider, country), now)
    expect(estimate('a', 'NL')).toEqual({ conversion: 0.75, samples: 0, scope: 'none', isSilent: false })
    record(statistics, cell('a', 'NL'), 200, 0.9)
    expect(estimate('a', 'NL')).toMatchObject({ scope: 'country', samples: 200 })
    expect(estimate('a', 'NL').conversion).toBeCloseTo(0.9, 2)
    // A country in the same region begins with its share, one elsewhere with that of the provider.
    expect(estimate('a', 'BE')).toMatchObject({ scope: 'region', samples: 0 })
    expect(estimate('a', 'BE').conversion).toBeCloseTo(0.9, 1)
    expect(estimate('a', 'BR').scope).toBe('provider')
    // A provider without outcomes begins with what others have in the region, not with nothing.
    expect(estimate('new', 'BE').scope).toBe('others')
    expect(estimate('new', 'BE').conversion).toBeCloseTo(0.9, 1)
    record(statistics, cell('a', 'BE'), 10, 0)
    expect(estimate('a', 'BE').conversion).toBeCloseTo(0.8 * (180 / 210), 1)
  })

  test('halves the weight of an outcome in a day, and follows a change after about a thousand codes', () => {
    const statistics = createRouteStatistics()
    const key = cell('a', 'NL')
    record(statistics, key, 400, 0.9)
    expect(statistics.estimate(key, now + dayMs).samples).toBeCloseTo(200, 5)
    record(statistics, key, 10_000, 0.9)
    expect(statistics.estimate(key, now).samples).toBeCloseTo(1_000, 0)
    record(statistics, key, 1_000, 0.5)
    const { conversion } = statistics.estimate(key, now)
    expect(conversion).toBeGreaterThan(0.6)
    expect(conversion).toBeLessThan(0.7)
  })
})

describe('unverified codes of strangers', () => {
  const key = cell('a', 'NL')

  test('lower an estimate only while known senders have fewer than 100 codes in the country', () => {
    const statistics = createRouteStatistics()
    const conversion = (provider: string) => statistics.estimate(cell(provider, 'NL'), now).conversion
    record(statistics, key, 50, 0.9, now, true)
    record(statistics, key, 450, 0)
    expect(conversion('a')).toBeCloseTo(0.09, 2)
    // Those of other providers count, too: the two are compared by the same senders.
    record(statistics, cell('b', 'NL'), 50, 0.8, now, true)
    expect(conversion('a')).toBeCloseTo(0.9, 1)
    record(statistics, key, 10_000, 0)
    expect(conversion('a')).toBeCloseTo(0.9, 1)
    expect(conversion('b')).toBeCloseTo(0.8, 1)
    expect(statistics.estimate(key, now).samples).toBeCloseTo(50, 5)
    // In another country, strangers are all there is.
    expect(statistics.estimate(cell('a', 'BE'), now).conversion).toBeLessThan(0.1)
  })

  test('count for silence, which must be noticed after few', () => {
    const statistics = createRouteStatistics()
    record(statistics, key, 300, 0.85, now, true)
    for (let index = 1; index <= 30; index++) statistics.recordSent(key, now + index * secondMs)
    expect(statistics.estimate(key, now + 60 * secondMs).isSilent).toBe(true)
  })
})

describe('silence', () => {
  const key = cell('a', 'NL')

  /** A provider with 85 of 100 codes verified, then 30 unverified ones a second apart. */
  function fallSilent() {
    const statistics = createRouteStatistics()
    record(statistics, key, 300, 0.85)
    for (let index = 1; index <= 30; index++) statistics.recordSent(key, now + index * secondMs)
    return statistics
  }

  test('is noticed once enough codes are unverified for longer than people usually need', () => {
    const statistics = fallSilent()
    expect(statistics.estimate(key, now + 40 * secondMs).isSilent).toBe(false)
    expect(statistics.estimate(key, now + 60 * secondMs).isSilent).toBe(true)
    // Codes that were sent before it began do not end it.
    statistics.recordOutcome(key, { isVerified: true, isKnown: false, sentAt: now }, now + 61 * secondMs)
    expect(statistics.estimate(key, now + 61 * secondMs).isSilent).toBe(true)
  })

  test('takes 11 codes in a row where 85 of 100 are usually verified', () => {
    for (const [count, isSilent] of [
      [10, false],
      [11, true],
    ] as const) {
      const statistics = createRouteStatistics()
      record(statistics, key, 300, 0.85)
      for (let index = 1; index <= count; index++) statistics.recordSent(key, now + index * secondMs)
      expect(statistics.estimate(key, now + 60 * secondMs).isSilent).toBe(isSilent)
    }
  })

  test('takes fewer codes where they are older, as in a small country', () => {
    for (const [count, isSilent] of [
      [5, false],
      [6, true],
    ] as const) {
      const statistics = createRouteStatistics()
      record(statistics, key, 300, 0.85)
      for (let index = 1; index <= count; index++) statistics.recordSent(key, now + index * 120 * secondMs)
      const asked = now + (count + 1) * 120 * secondMs
      expect(statistics.estimate(key, asked).isSilent).toBe(isSilent)
    }
  })

  test('lets one message pass an hour after the last one, whose code shows if they arrive again', () => {
    const statistics = fallSilent()
    const last = now + 30 * secondMs
    const isSilent = (at: number) => statistics.estimate(key, at).isSilent
    expect(isSilent(now + 60 * secondMs)).toBe(true)
    expect(isSilent(last + hourMs - 1)).toBe(true)
    expect(isSilent(last + hourMs)).toBe(false)
    const probe = last + 2 * hourMs
    statistics.recordSent(key, probe)
    expect(isSilent(probe + 1)).toBe(true)
    statistics.recordOutcome(key, { isVerified: true, isKnown: false, sentAt: probe }, probe + 20 * secondMs)
    expect(isSilent(probe + 20 * secondMs)).toBe(false)
  })

  test('ends with a verified code, one of its own or of a later probe', () => {
    for (const sentAt of [now + 2 * secondMs, now + 600 * secondMs]) {
      const statistics = fallSilent()
      expect(statistics.estimate(key, now + 60 * secondMs).isSilent).toBe(true)
      statistics.recordOutcome(key, { isVerified: true, isKnown: false, sentAt }, sentAt + 30 * secondMs)
      expect(statistics.estimate(key, sentAt + 30 * secondMs).isSilent).toBe(false)
    }
  })

  test('is not seen where few codes were ever verified', () => {
    const statistics = createRouteStatistics()
    record(statistics, key, 300, 0.3)
    for (let index = 1; index <= 30; index++) statistics.recordSent(key, now + index * secondMs)
    expect(statistics.estimate(key, now + 120 * secondMs).isSilent).toBe(false)
  })
})

describe('two nodes', () => {
  const key = cell('a', 'NL')

  test('share the counts of known senders apart', () => {
    const [one, other] = [createRouteStatistics(), createRouteStatistics()]
    record(one, key, 100, 0.9, now, true)
    record(one, key, 300, 0)
    const deltas = one.takeDeltas()
    expect(deltas).toMatchObject([
      { isKnown: false, outcomes: 400, verified: 90 },
      { isKnown: true, outcomes: 100, verified: 90 },
    ])
    other.merge(
      deltas.map((delta) => ({ ...delta, at: now })),
      now,
    )
    expect(other.estimate(key, now)).toEqual(one.estimate(key, now))
    one.restore(deltas)
    expect(one.takeDeltas()).toEqual(deltas)
  })

  test('learn from rows, and keep what they have not shared yet', () => {
    const [one, other] = [createRouteStatistics(), createRouteStatistics()]
    record(one, key, 100, 0.9)
    const [delta, ...others] = one.takeDeltas()
    expect(others).toEqual([])
    expect(delta).toMatchObject({ ...key, outcomes: 100, verified: 90, verifiedSentAt: now })
    expect(one.takeDeltas()).toEqual([])
    const row = {
      ...key,
      isKnown: false,
      outcomes: 100,
      verified: 90,
      at: now,
      verifiedSentAt: now,
      silentSince: 0,
    }
    record(other, key, 50, 0)
    other.merge([row], now)
    expect(other.estimate(key, now).samples).toBe(150)
    one.merge([row], now)
    expect(one.estimate(key, now).samples).toBe(100)
  })

  test('count what could not be written with the next batch', () => {
    const statistics = createRouteStatistics()
    record(statistics, key, 10, 1)
    statistics.restore(statistics.takeDeltas())
    record(statistics, key, 5, 0)
    expect(statistics.takeDeltas()).toMatchObject([{ outcomes: 15, verified: 10 }])
  })
})
