import type { Clock } from '../../src/domain/model/clock.ts'

export type TestClock = Clock & { advance(ms: number): void; set(ms: number): void }

/** Creates a clock that stops at `startMs` until the test moves it. */
export function testClock(startMs = Date.parse('2026-11-20T12:00:00.000Z')): TestClock {
  let now = startMs
  return {
    now: () => now,
    advance: (ms) => void (now += ms),
    set: (ms) => void (now = ms),
  }
}
