import { describe, expect, test } from 'bun:test'
import { testClock } from '../../helpers/clock.ts'
import { createClockStepDetector, systemClock } from '../../../src/domain/model/clock.ts'

describe('the system clock', () => {
  /** A simulated machine in milliseconds; like a real one it reports its uptime in whole seconds. */
  function startMachine() {
    const machine = { wall: 1_700_000_000_400, monotonic: 250, uptime: 90_900 }
    const clock = systemClock(
      () => machine.wall,
      () => machine.monotonic,
      () => Math.floor(machine.uptime / 1000),
    )
    const advanceTime = (ms: number) => {
      machine.wall += ms
      machine.monotonic += ms
      machine.uptime += ms
    }
    const sleep = (ms: number) => {
      machine.wall += ms
      machine.uptime += ms
    }
    return { machine, clock, advanceTime, sleep }
  }

  test('follows wall time while that does not step', () => {
    const { machine, clock, advanceTime } = startMachine()
    for (const ms of [0, 1, 99, 100, 900, 60_000]) {
      advanceTime(ms)
      expect(clock.now()).toBe(machine.wall)
    }
  })

  test('ignores steps of the wall clock', () => {
    const { machine, clock, advanceTime } = startMachine()
    const before = clock.now()
    machine.wall += 7_200_000
    advanceTime(10)
    expect(clock.now()).toBe(before + 10)
    machine.wall -= 90_000_000
    advanceTime(10)
    expect(clock.now()).toBe(before + 20)
  })

  test('includes the time that the machine was suspended, and continues from there', () => {
    const { machine, clock, advanceTime, sleep } = startMachine()
    for (const ms of [8 * 3_600_000, 45_000]) {
      sleep(ms)
      advanceTime(5)
      const afterSleep = clock.now()
      expect(Math.abs(afterSleep - machine.wall)).toBeLessThanOrEqual(2000)
      advanceTime(700)
      expect(clock.now()).toBe(afterSleep + 700)
    }
  })
})

describe('the clock step detector', () => {
  const createDetector = (start: number) => {
    const clock = testClock(start)
    const wallClock = testClock(start)
    const nextStep = createClockStepDetector(clock, wallClock)
    return {
      nextStep,
      advanceTime: (ms: number) => [clock, wallClock].forEach((one) => one.advance(ms)),
      wallClock,
    }
  }

  test('reports a step once, in either direction, and again when it is undone', () => {
    const { nextStep, advanceTime, wallClock } = createDetector(1_700_000_000_000)
    for (const [stepMs, expectedStep] of [
      [0, undefined],
      [7_200_000, 7_200_000],
      [0, undefined],
      [-86_400_000, -79_200_000],
      [79_200_000, 0],
      [0, undefined],
    ] as const) {
      wallClock.advance(stepMs)
      advanceTime(10_000)
      expect(nextStep()).toBe(expectedStep)
    }
  })

  test('ignores small steps until they add up', () => {
    const { nextStep, wallClock } = createDetector(0)
    wallClock.advance(4_000)
    expect(nextStep()).toBeUndefined()
    wallClock.advance(4_000)
    expect(nextStep()).toBe(8_000)
  })
})
