import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readLastBackup } from '../../../src/backups/last-backup.ts'
import { dataFiles } from '../../../src/store/data-dir/data-dir.ts'
import { cannotWrite } from '../../../src/store/data-dir/lock.ts'
import {
  lockDataDir,
  readServerRecord,
  removeServerRecord,
  writeServerRecord,
} from '../../../src/store/data-dir/server-record.ts'

let dataDir: string
beforeEach(() => void (dataDir = mkdtempSync(join(tmpdir(), 'otpd-record-'))))
afterEach(() => rmSync(dataDir, { recursive: true }))

test('a record is read while its server holds the lock, and only its owner may', () => {
  const lock = lockDataDir(dataDir)
  writeServerRecord(dataDir, { pid: 1 })
  expect(readServerRecord(dataDir)).toEqual({ pid: 1 })
  expect(statSync(dataFiles(dataDir).serverRecord).mode & 0o777).toBe(0o600)
  removeServerRecord(dataDir)
  expect(readServerRecord(dataDir)).toBeUndefined()
  lock?.release()
})

test('the record of a server that was killed is not read, and its successor removes it', () => {
  writeServerRecord(dataDir, { pid: 1 })
  expect(readServerRecord(dataDir)).toBeUndefined()
  const lock = lockDataDir(dataDir)
  expect(existsSync(dataFiles(dataDir).serverRecord)).toBe(false)
  expect(readServerRecord(dataDir)).toBeUndefined()
  lock?.release()
})

test('a record that cannot be removed is named, and the lock is free again', () => {
  const { serverRecord } = dataFiles(dataDir)
  mkdirSync(serverRecord)
  expect(() => lockDataDir(dataDir)).toThrow(`${serverRecord} cannot be written to`)
  rmdirSync(serverRecord)
  const lock = lockDataDir(dataDir)
  expect(lock).toBeDefined()
  lock?.release()
})

test('a file that is no record is none', () => {
  const lock = lockDataDir(dataDir)
  writeFileSync(dataFiles(dataDir).serverRecord, '{')
  expect(readServerRecord(dataDir)).toBeUndefined()
  lock?.release()
})

test.each(['otpd.lock', 'last-backup.json'])(
  'a pipe called %s is not opened, which would never end',
  (name) => {
    const path = join(dataDir, name)
    Bun.spawnSync(['mkfifo', path])
    if (name === 'otpd.lock')
      expect(() => lockDataDir(dataDir)).toThrow(`${path} is a pipe or a device, not a file`)
    expect(readServerRecord(dataDir)).toBeUndefined()
    expect(readLastBackup(dataDir)).toBeNull()
  },
)

test('a full disk is not called a fault of permissions', () => {
  for (const code of ['SQLITE_FULL', 'ENOSPC'])
    expect(cannotWrite('/d/otpd.lock', { code })).toMatchObject({
      message: `/d/otpd.lock cannot be written to (the disk is full, ${code})`,
      remedy: 'Make room on its disk, then run this again.',
    })
  expect(cannotWrite('/d/otpd.lock', { code: 'EACCES' }).remedy).toContain('the permissions')
})
