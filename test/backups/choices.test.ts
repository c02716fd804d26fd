import { expect, test } from 'bun:test'
import { utimesSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeOldDrafts } from '../../src/backups/folder.ts'
import { backupFileName, sealedName, timeInFileName, timeInSealedName } from '../../src/backups/names.ts'
import { chooseLatest, choosePruned, type StoredBackup } from '../../src/backups/choices.ts'

const stored = (...states: StoredBackup['state'][]): StoredBackup[] =>
  states.map((state, index) => ({ name: `n${index}`, at: 1000 - index, bytes: 1, state }))

const pruned = (backups: readonly StoredBackup[], keep: number, now = 1000) =>
  choosePruned(backups, keep, now).map(({ name }) => name)

test('pruning keeps the newest that verified, and what is newer than the oldest of them', () => {
  expect(pruned(stored('verified', 'verified', 'verified'), 2)).toEqual(['n2'])
  expect(pruned(stored('unverified', 'verified', 'unverified', 'verified', 'unverified'), 2)).toEqual(['n4'])
  expect(pruned(stored('verified', 'verified', 'verified').toReversed(), 1)).toEqual(['n1', 'n2'])
})

test('the latest backup is the newest that verified, and only without one the newest', () => {
  expect(chooseLatest(stored('another key', 'unverified', 'verified', 'verified'))?.name).toBe('n2')
  expect(chooseLatest(stored('another key', 'unverified', 'unverified').toReversed())?.name).toBe('n1')
  expect(chooseLatest(stored('another key'))).toBeUndefined()
})

test('pruning deletes nothing until enough have verified, and never a backup of another master key', () => {
  expect(pruned(stored('verified', 'unverified', 'unverified', 'unverified'), 2)).toEqual([])
  expect(pruned(stored('verified', 'another key', 'unverified'), 1)).toEqual(['n2'])
})

test('pruning leaves backups of a clock that was ahead, and does not count them', () => {
  expect(pruned(stored('verified', 'verified', 'verified', 'verified'), 1, 998)).toEqual(['n3'])
  expect(pruned(stored('verified', 'verified'), 1, 999)).toEqual([])
})

test('names carry the time, and only whole names of otpd are read', () => {
  const at = Date.parse('2026-11-20T12:00:00.123Z')
  expect(backupFileName(at)).toBe('otpd-2026-11-20T12-00-00-123Z.db')
  expect([timeInFileName(backupFileName(at)), timeInSealedName(sealedName(at))]).toEqual([at, at])
  for (const name of [
    'before-migration-2026-11-20T12-00-00-123Z.db',
    'my-otpd-2026-11-20T12-00-00-123Z.db',
    'otpd-2026-11-20T12-00-00-123Z.db.bak',
    'otpd-2026-13-41T12-00-00-123Z.db',
    'otpd-monday.db',
  ])
    expect([name, timeInFileName(name), timeInSealedName(name)]).toEqual([name, undefined, undefined])
})

test('drafts of killed processes are deleted after an hour, and nothing else', () => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-drafts-'))
  const draft = (name: string) => `${name}.${crypto.randomUUID()}.part`
  const [old, fresh] = [draft(backupFileName(1000)), draft(backupFileName(2000))]
  const own = [draft('otpd-mine.db'), 'notes.part', backupFileName(1000)]
  for (const name of [old, fresh, ...own]) writeFileSync(join(folder, name), 'x')
  for (const name of [old, ...own]) utimesSync(join(folder, name), 1, 1)
  removeOldDrafts(folder, Date.now())
  expect(readdirSync(folder).toSorted()).toEqual([fresh, ...own].toSorted())
  rmSync(folder, { recursive: true })
})
