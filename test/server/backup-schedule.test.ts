import { expect, test } from 'bun:test'
import type { LastBackup } from '../../src/backups/last-backup.ts'
import { createBackupSchedule } from '../../src/server/backup-schedule.ts'
import { dayMs, hourMs, minuteMs } from '../../src/shared/durations.ts'
import { testClock } from '../helpers/clock.ts'

function makeSchedule(options: { everyMs?: number; last?: number; random?: number } = {}) {
  const { everyMs = dayMs, random = 0 } = options
  const clock = testClock()
  const startedAt = clock.now()
  const backups: number[] = []
  let last: LastBackup | null =
    options.last === undefined ? null : { file: 'x', at: startedAt + options.last, bytes: 1 }
  let failure: Error | null = null
  let failures = 0
  const check = createBackupSchedule({
    everyMs,
    clock,
    random: () => random,
    readLast: () => last,
    async makeBackup() {
      if (failure) throw failure
      backups.push(clock.now() - startedAt)
      last = { file: 'x', at: clock.now(), bytes: 1 }
    },
    onFailed: () => failures++,
  })
  return {
    backups,
    failures: () => failures,
    setClockBack: (ms: number) => clock.advance(-ms),
    setFailure: (error: Error | null) => void (failure = error),
    setLast: (at: number) => void (last = { file: 'x', at: startedAt + at, bytes: 1 }),
    /** Lets time pass, with a check every ten minutes. */
    async run(ms: number) {
      for (let passed = 0; passed < ms; passed += 10 * minuteMs) {
        await check()
        clock.advance(10 * minuteMs)
      }
      await check()
    },
  }
}

test('makes the first backup at once, and then one every interval', async () => {
  const schedule = makeSchedule()
  await schedule.run(2 * dayMs + hourMs)
  expect(schedule.backups).toEqual([0, dayMs, 2 * dayMs])
})

test('spreads backups by at most five minutes', async () => {
  const schedule = makeSchedule({ random: 1 })
  await schedule.run(dayMs + hourMs)
  expect(schedule.backups).toEqual([10 * minuteMs, 10 * minuteMs + dayMs + 10 * minuteMs])
})

test('continues after a restart where it was, and counts backups that were made by hand', async () => {
  const schedule = makeSchedule({ last: -23 * hourMs })
  await schedule.run(2 * hourMs)
  expect(schedule.backups).toEqual([hourMs])
  const other = makeSchedule({ last: -10 * hourMs })
  await other.run(5 * hourMs)
  other.setLast(5 * hourMs)
  await other.run(20 * hourMs)
  expect(other.backups).toEqual([])
})

test('makes one at once after a time of rest, or if the last is from a wrong clock', async () => {
  const schedule = makeSchedule({ last: -30 * dayMs })
  await schedule.run(0)
  expect(schedule.backups).toEqual([0])
  const future = makeSchedule({ last: 300 * dayMs })
  await future.run(0)
  expect(future.backups).toEqual([0])
})

test('counts a failure, and tries again after an hour', async () => {
  const schedule = makeSchedule()
  schedule.setFailure(new Error('disk full'))
  await schedule.run(2 * hourMs + 10 * minuteMs)
  expect([schedule.failures(), schedule.backups]).toEqual([3, []])
  schedule.setFailure(null)
  await schedule.run(hourMs)
  expect(schedule.backups).toHaveLength(1)
  const often = makeSchedule({ everyMs: 10 * minuteMs })
  often.setFailure(new Error('disk full'))
  await often.run(hourMs)
  expect(often.failures()).toBe(7)
})

test('does not wait for a time that a wrong clock named, neither after the start nor after a failure', async () => {
  const started = makeSchedule({ random: 1 })
  await started.run(0)
  started.setClockBack(3650 * dayMs)
  await started.run(0)
  expect(started.backups).toEqual([-3650 * dayMs])
  const failed = makeSchedule()
  failed.setFailure(new Error('the certificate is not valid yet'))
  await failed.run(0)
  failed.setFailure(null)
  failed.setClockBack(3650 * dayMs)
  await failed.run(0)
  expect(failed.backups).toEqual([-3650 * dayMs])
})
