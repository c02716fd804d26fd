import { expect, test } from 'bun:test'
import { createClockStepLogger } from '../../src/server/periodic-tasks.ts'
import { testClock } from '../helpers/clock.ts'
import { collectLog } from '../helpers/log.ts'

test.each([
  [false, 'times that otpd stores and returns follow it after a restart'],
  [true, 'times that otpd stores are those of the database'],
])('says what a system clock that was set means (shared database: %p)', async (isShared, meaning) => {
  const [clock, wall] = [testClock(), testClock()]
  const { log, text } = collectLog()
  const check = createClockStepLogger({ clock, wall, isShared }, log)
  check()
  wall.advance(3_600_000)
  check()
  check()
  expect(JSON.parse(await text())).toMatchObject({
    level: 'warn',
    msg: `the system clock was set; ${meaning}`,
    aheadSeconds: 3600,
  })
})
