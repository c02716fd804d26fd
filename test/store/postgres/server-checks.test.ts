import { expect, test } from 'bun:test'
import { unavailable } from '../../../src/store/engine/errors.ts'
import { StartRefused } from '../../../src/store/data-dir/data-dir.ts'
import { toStartError } from '../../../src/store/postgres/connect.ts'
import {
  requireSafeServer,
  requireSameTime,
  type ServerFacts,
} from '../../../src/store/postgres/server-checks.ts'

const good: ServerFacts = {
  version: 150_018,
  isInRecovery: false,
  isReadOnly: false,
  hasSchema: true,
  fsync: 'on',
  synchronousCommit: 'on',
  synchronousStandbys: '',
}

test.each<[Partial<ServerFacts>, string]>([
  [{ version: 130_022 }, 'the server is PostgreSQL 13, and otpd needs 14 or later'],
  [{ isInRecovery: true }, 'the server is a standby, which accepts no writes'],
  [{ hasSchema: false }, 'the role of the database URL may not use the schema of the tables'],
  [{ isReadOnly: true }, 'the database accepts no writes (default_transaction_read_only=on)'],
])('refuses a server with %p, also for tests', (facts, message) => {
  for (const isUnsafe of [false, true])
    expect(() => requireSafeServer({ ...good, ...facts }, isUnsafe)).toThrow(message)
})

test.each<[Partial<ServerFacts>, string]>([
  [{ fsync: 'off' }, '(fsync=off)'],
  [{ synchronousCommit: 'off' }, '(synchronous_commit=off)'],
  [{ fsync: 'off', synchronousCommit: 'off' }, '(fsync=off, synchronous_commit=off)'],
])('refuses a server with %p unless a test says so', (facts, message) => {
  expect(() => requireSafeServer({ ...good, ...facts }, false)).toThrow(
    `acknowledged codes would be lost in a crash of the server ${message}`,
  )
  requireSafeServer({ ...good, ...facts }, true)
})

test('accepts every other level of synchronous_commit', () => {
  for (const synchronousCommit of ['on', 'local', 'remote_write', 'remote_apply'])
    requireSafeServer({ ...good, version: 140_000, synchronousCommit }, false)
})

test('tells a supervisor to try again when the database is lost during the start', () => {
  for (const code of ['POSTGRES_CONNECT_TIMEOUT', '40001', '57P01'])
    expect(toStartError(unavailable(code))).toMatchObject({
      message: `the database cannot be reached (${code})`,
      isUnreachable: true,
    })
  expect(toStartError(unavailable('55P03'))).toMatchObject({
    message: 'another transaction keeps a table locked (55P03)',
    isUnreachable: true,
  })
  expect(toStartError(unavailable('25006'))).toMatchObject({
    message: 'the database accepts no writes (25006)',
  })
})

test('warns of clocks that differ by more than a second, and refuses more than 30', () => {
  expect(requireSameTime(1_000)).toBeUndefined()
  expect(requireSameTime(-1_001)).toBe("this machine's clock is 1.0 s ahead of the database's")
  expect(requireSameTime(30_000)).toBe("this machine's clock is 30.0 s behind the database's")
  expect(() => requireSameTime(30_001)).toThrow(StartRefused)
  expect(() => requireSameTime(-30_001)).toThrow(StartRefused)
})
