import { expect, test } from 'bun:test'
import { backupChecks, missingBackupChecks } from '../../../cli/doctor/backups.ts'
import type { BackupInspection } from '../../../src/host/host.ts'
import { dayMs } from '../../../src/shared/durations.ts'

const now = Date.parse('2026-11-20T12:00:00Z')
const scheduled: BackupInspection = {
  every: '24h',
  everyMs: dayMs,
  last: { file: 's3://acme/otpd/x', at: now - dayMs, bytes: 7_100_000 },
  onDataDisk: null,
  missingFolder: null,
}
const check = (changes: Partial<BackupInspection>) => backupChecks({ ...scheduled, ...changes }, now)

test('warns once where nothing makes backups', () => {
  const unscheduled = { ...scheduled, every: null, everyMs: null, onDataDisk: '/data/backups' }
  const missing = (last: BackupInspection['last']) => ({
    first: missingBackupChecks({ ...unscheduled, last }, now),
    later: backupChecks({ ...unscheduled, last }, now),
  })
  expect(missing(null)).toMatchObject({
    first: [{ status: 'warning', message: 'none, and no schedule: with this disk, all data would be lost' }],
    later: [],
  })
  const old = missing({ file: '/nas/x', at: now - 9 * dayMs, bytes: 1 })
  expect(old).toMatchObject({
    first: [{ message: expect.stringContaining('the last one is 216 h old') }],
    later: [],
  })
  expect(missing({ file: '/nas/x', at: now - 6 * dayMs, bytes: 1 }).first).toEqual([])
  expect(missingBackupChecks({ ...scheduled, last: null }, now)).toEqual([])
})

test('names the last backup while it is younger than twice the interval', () => {
  expect(check({})).toMatchObject([
    { status: 'ok', message: expect.stringContaining('7.1 MB, s3://acme/otpd/x') },
  ])
  const hand = check({ every: null, everyMs: null, last: { file: '/nas/x', at: now - 7 * dayMs, bytes: 1 } })
  expect(hand).toMatchObject([{ status: 'ok', message: expect.stringContaining('no schedule') }])
})

test('that go to a folder that is not there are a fault, whatever was made before', () => {
  expect(check({ missingFolder: '/mnt/nas' })).toMatchObject([
    { status: 'fault', message: 'there is no folder /mnt/nas: no backup is made' },
  ])
})

test('warns of one that is overdue or missing, and of one on the disk of the data', () => {
  const late = check({ last: { file: 's3://acme/otpd/x', at: now - 2 * dayMs - 1, bytes: 1 } })
  expect(late).toMatchObject([
    { status: 'warning', message: expect.stringContaining('one is due every 24h') },
  ])
  expect(check({ last: null })).toMatchObject([
    { status: 'warning', message: expect.stringContaining('none yet') },
  ])
  expect(check({ onDataDisk: '/data/backups' })).toMatchObject([
    { status: 'warning', message: '/data/backups is on the disk of the data: both would be lost together' },
  ])
})
