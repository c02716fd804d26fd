import { expect, test } from 'bun:test'
import { asCliError } from '../../cli/host/commands.ts'
import { exitCodes } from '../../cli/terminal/errors.ts'
import { unavailable } from '../../src/store/engine/errors.ts'

test('a host command on a full disk says so, which the API does not', () => {
  const error = unavailable('SQLITE_FULL')
  const message = 'The database cannot store anything right now (the disk is full, SQLITE_FULL).'
  expect(asCliError(error)).toMatchObject({
    message,
    code: 'UNAVAILABLE',
    exitCode: exitCodes.bug,
    hints: ['Find the cause with: otpd doctor'],
  })
  expect(error.message).not.toContain('SQLITE_FULL')
})
