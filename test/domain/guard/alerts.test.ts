import { describe, expect, test } from 'bun:test'
import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import { createGuardBench, sendSlowly } from '../../helpers/guard.ts'

describe('an alert', () => {
  test('comes at 30 unverified messages where nothing was verified, once an hour while it lasts', async () => {
    const bench = createGuardBench()
    await sendSlowly(bench, 29, 30_000)
    expect(bench.alerts).toEqual([])
    await sendSlowly(bench, 211, 30_000)
    expect(bench.alerts.slice(0, 1)).toEqual([
      { country: 'NL', prefix: null, reason: 'nothing_verified', unverified: 30, usual: 0 },
    ])
    // In two hours, in which most were blocked.
    expect(bench.alerts).toHaveLength(2)
  })

  test('comes with a burst of messages in flight, without a later message', async () => {
    const bench = createGuardBench()
    await bench.send(145)
    expect(bench.alerts).toMatchObject([{ country: 'NL', reason: 'nothing_verified', unverified: 30 }])
  })

  test('comes where the allowance of a country is spent, and customers are refused', async () => {
    const bench = createGuardBench()
    for (let n = 0; n < 5; n++) await bench.verify((await bench.send(1)).request)
    await bench.send(200)
    expect(bench.alerts).toEqual([])
    await bench.send(1)
    expect(bench.alerts).toMatchObject([{ country: 'NL', reason: 'allowance', unverified: 200 }])
    await bench.send(1, { country: 'BE', isRelayed: true })
    await bench.send(300, { country: 'BE', isRelayed: true })
    expect(bench.alerts.slice(1)).toMatchObject([{ country: 'BE', reason: 'allowance', unverified: 300 }])
  })

  test('comes within ten minutes at three times the usual rate, and not for honest traffic', async () => {
    const bench = createGuardBench({ countries: ['NL'] })
    const honest = async (hours: number, perHour: number) => {
      for (let n = 0; n < hours * perHour; n++) {
        const { request } = await bench.send(1)
        bench.clock.advance(hourMs / perHour)
        if (n % 2) await bench.verify(request)
      }
    }
    await honest(15 * 24, 20)
    expect(bench.alerts).toEqual([])
    const from = bench.clock.now()
    while (bench.alerts.length === 0 && bench.clock.now() < from + hourMs) await sendSlowly(bench, 1, 40_000)
    expect(bench.clock.now() - from).toBeLessThanOrEqual(10 * minuteMs)
    expect(bench.alerts).toMatchObject([{ country: 'NL', prefix: null, reason: 'rate' }])
  })

  test('comes within a day when a day has half as many again as the greatest of 14', async () => {
    const bench = createGuardBench({ countries: ['NL'] })
    const day = async (perDay: number) => {
      for (let n = 0; n < perDay; n++) {
        const { request } = await bench.send(1)
        bench.clock.advance(dayMs / perDay)
        if (n % 2) await bench.verify(request)
      }
    }
    for (let n = 0; n < 15; n++) await day(100)
    expect(bench.alerts).toEqual([])
    await day(300)
    expect(bench.alerts.at(0)).toMatchObject({ country: 'NL', reason: 'day', usual: expect.any(Number) })
  })

  test('does not come in the first weeks of codes of another system, as many each day', async () => {
    const bench = createGuardBench()
    for (let n = 0; n < 20 * 100; n++) {
      await bench.send(1, { isRelayed: true })
      bench.clock.advance(dayMs / 100)
    }
    expect(bench.alerts).toEqual([])
    await sendSlowly(bench, 20, 30_000, { isRelayed: true })
    expect(bench.alerts).toMatchObject([{ reason: 'rate' }])
  })

  test('comes once an hour where the pool is spent, however many countries share it', async () => {
    const bench = createGuardBench()
    for (let n = 0; n < 400; n++) {
      await bench.send(1, { country: `C${n % 40}` })
      bench.clock.advance(10_000)
    }
    expect(bench.alerts).toMatchObject([{ country: 'C20', reason: 'pool', unverified: 300 }])
  })

  test('comes within ten minutes where codes of other systems go to many countries, few to each', async () => {
    const bench = createGuardBench()
    const spread = async (minutes: number) => {
      const from = bench.clock.now()
      for (let n = 0; bench.alerts.length === 0 && bench.clock.now() < from + minutes * minuteMs; n++) {
        await bench.send(1, { country: `C${n % 200}`, isRelayed: true })
        bench.clock.advance(1_000)
      }
      return bench.alerts.splice(0).map(({ reason }) => reason)
    }
    // Nothing is usual yet.
    expect(await spread(10)).toEqual(['relay_day'])
    bench.clock.advance(30 * dayMs)
    for (let n = 0; n < 20 * 240; n++) {
      await bench.send(1, { country: `C${n % 10}`, isRelayed: true })
      bench.clock.advance(dayMs / 240)
    }
    expect(bench.alerts).toEqual([])
    expect(await spread(10)).toEqual(['relay_rate'])
    // At once, as no later message may come.
    const burst = createGuardBench()
    for (let n = 0; n < 302; n++) await burst.send(1, { country: `C${n % 200}`, isRelayed: true })
    expect(burst.alerts).toMatchObject([{ reason: 'relay_day', unverified: 301 }])
    // As long as it lasts.
    bench.clock.advance(hourMs)
    expect(await spread(10)).toEqual(['relay_day'])
  })

  test('names a prefix that is swept in a country with evidence', async () => {
    const bench = createGuardBench()
    for (let n = 0; n < 20; n++) await bench.verify((await bench.send(1)).request)
    await sendSlowly(bench, 40, 90_000, { phone: '+31699990001' })
    expect(bench.alerts).toMatchObject([{ country: 'NL', prefix: '+3169999', reason: 'nothing_verified' }])
  })
})
