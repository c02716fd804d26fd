import { describe, expect, test } from 'bun:test'
import { testClock } from '../../helpers/clock.ts'
import { createStepWatch, systemClock } from '../../../src/domain/model/clock.ts'

describe('the clock of the system', () => {
  /** A machine in the test's hands, in milliseconds; as the real one it tells its uptime in whole seconds. */
  function startMachine() {
    const machine = { wall: 1_700_000_000_400, monotonic: 250, uptime: 90_900 }
    const clock = systemClock(
      () => machine.wall,
      () => machine.monotonic,
      () => Math.floor(machine.uptime / 1000),
    )
    const pass = (ms: number) => {
      machine.wall += ms
      machine.monotonic += ms
      machine.uptime += ms
    }
    const sleep = (ms: number) => {
      machine.wall += ms
      machine.uptime += ms
    }
    return { machine, clock, pass, sleep }
  }

  test('follows the wall while nothing happens to it', () => {
    const { machine, clock, pass } = startMachine()
    for (const ms of [0, 1, 99, 100, 900, 60_000]) {
      pass(ms)
      expect(clock.now()).toBe(machine.wall)
    }
  })

  test('is not moved by a step of the wall', () => {
    const { machine, clock, pass } = startMachine()
    const before = clock.now()
    machine.wall += 7_200_000
    pass(10)
    expect(clock.now()).toBe(before + 10)
    machine.wall -= 90_000_000
    pass(10)
    expect(clock.now()).toBe(before + 20)
  })

  test('has moved on after a sleep of the machine, and goes on from there', () => {
    const { machine, clock, pass, sleep } = startMachine()
    for (const ms of [8 * 3_600_000, 45_000]) {
      sleep(ms)
      pass(5)
      const awake = clock.now()
      expect(Math.abs(awake - machine.wall)).toBeLessThanOrEqual(2000)
      pass(700)
      expect(clock.now()).toBe(awake + 700)
    }
  })
})

describe('a watch on the system clock', () => {
  const watchFrom = (start: number) => {
    const clock = testClock(start)
    const wall = testClock(start)
    const stepOf = createStepWatch(clock, wall)
    return { stepOf, pass: (ms: number) => [clock, wall].forEach((one) => one.advance(ms)), wall }
  }

  test('tells a step once, in either direction, and when it is taken back', () => {
    const { stepOf, pass, wall } = watchFrom(1_700_000_000_000)
    for (const [stepMs, told] of [
      [0, undefined],
      [7_200_000, 7_200_000],
      [0, undefined],
      [-86_400_000, -79_200_000],
      [79_200_000, 0],
      [0, undefined],
    ] as const) {
      wall.advance(stepMs)
      pass(10_000)
      expect(stepOf()).toBe(told)
    }
  })

  test('keeps small ones to itself, until together they are more', () => {
    const { stepOf, wall } = watchFrom(0)
    wall.advance(4_000)
    expect(stepOf()).toBeUndefined()
    wall.advance(4_000)
    expect(stepOf()).toBe(8_000)
  })
})
