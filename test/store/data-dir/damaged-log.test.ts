import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findLogDamage, keepDamagedLog, listDamagedLogs } from '../../../src/store/data-dir/damaged-log.ts'
import { connect } from '../../../src/store/sqlite/database.ts'

let folder: string
let wal: string
const frameBytes = 4096 + 24

/** Leaves a log of ten commits of a page each, after one that a checkpoint has applied: its frames are left over. */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-log-'))
  const source = join(folder, 'source.db')
  const connection = connect(source, 0)
  connection.run('create table commits (number integer)')
  for (let number = 0; number < 30; number++) connection.run('insert into commits values (?)', [-number])
  connection.run('PRAGMA wal_checkpoint(RESTART)')
  for (let number = 1; number <= 10; number++) connection.run('insert into commits values (?)', [number])
  wal = join(folder, 'otpd.db-wal')
  copyFileSync(source, join(folder, 'otpd.db'))
  copyFileSync(`${source}-wal`, wal)
  connection.close()
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function readCommits(): number {
  const connection = new Database(join(folder, 'otpd.db'))
  const [row] = connection.query<[number], []>('select max(number) from commits').values()
  connection.close()
  return Number(row?.[0])
}

test.each([
  ['as it was written', (bytes: Buffer) => bytes, null, 10],
  [
    'cut in its last frame',
    (bytes: Buffer) => bytes.fill(7, 32 + 9 * frameBytes + 500, 32 + 10 * frameBytes),
    null,
    9,
  ],
  [
    'damaged in its fourth frame',
    (bytes: Buffer) => bytes.fill(7, 32 + 3 * frameBytes + 500, 32 + 3 * frameBytes + 510),
    { framesRead: 3, framesLost: 6 },
    3,
  ],
  ['with a damaged header', (bytes: Buffer) => bytes.fill(7, 12, 16), { framesRead: 0, framesLost: 10 }, 0],
] as const)('a log %s', (_, change, damage, commits) => {
  const bytes = change(readFileSync(wal))
  writeFileSync(wal, bytes, { mode: 0o600 })
  const { mtimeMs } = statSync(wal)
  expect(findLogDamage(folder)).toEqual(damage === null ? null : expect.objectContaining(damage))
  for (const _ of [1, 2]) keepDamagedLog(folder)
  expect(readCommits()).toBe(commits)
  expect(existsSync(wal)).toBe(false)
  expect(findLogDamage(folder)).toBe(null)
  const logs = listDamagedLogs(folder)
  expect(logs).toMatchObject(damage === null ? [] : [{ ...damage, writtenAt: Math.floor(mtimeMs) }])
  for (const { path } of logs)
    expect([readFileSync(path).equals(bytes), statSync(path).mode & 0o777]).toEqual([true, 0o600])
})
