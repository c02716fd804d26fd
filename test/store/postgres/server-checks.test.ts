import { expect, test } from 'bun:test'
import { StartRefused } from '../../../src/store/files/data-dir.ts'
import {
  requireSafeServer,
  requireSameTime,
  type ServerFacts,
} from '../../../src/store/postgres/server-checks.ts'

const good: ServerFacts = {
  version: 150_018,
  isInRecovery: false,
  isReadOnly: false,
  fsync: 'on',
  synchronousCommit: 'on',
  synchronousStandbys: '',
}

test.each<[Partial<ServerFacts>, string]>([
  [{ version: 130_022 }, 'the server is PostgreSQL 13, and otpd needs 14 or later'],
  [{ isInRecovery: true }, 'the server is a standby, which accepts no writes'],
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

test('warns of clocks that differ by more than a second, and refuses more than 30', () => {
  expect(requireSameTime(1_000)).toBeUndefined()
  expect(requireSameTime(-1_001)).toBe("this machine's clock is 1.0 s ahead of the database's")
  expect(requireSameTime(30_000)).toBe("this machine's clock is 30.0 s behind the database's")
  expect(() => requireSameTime(30_001)).toThrow(StartRefused)
  expect(() => requireSameTime(-30_001)).toThrow(StartRefused)
})
