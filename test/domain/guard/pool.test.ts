import { expect, test } from 'bun:test'
import { hourMs } from '../../../src/shared/durations.ts'
import { createGuardBench } from '../../helpers/guard.ts'

test('a country keeps its evidence while others spend the pool that it needs', async () => {
  const bench = createGuardBench()
  await bench.verify((await bench.send(1)).request)
  for (let day = 0; day < 30; day++) {
    for (let n = 0; n < 3; n++) await bench.send(100, { country: `C${n}` })
    const { rules } = await bench.send(30)
    expect(rules.filter((rule) => rule === '').length).toBe(20)
    bench.clock.advance(26 * hourMs)
  }
})
