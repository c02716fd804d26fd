import { afterEach, beforeEach, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { readLastBackup } from '../../src/backups/last-backup.ts'
import { backupFileName, timeInFileName } from '../../src/backups/names.ts'
import { openHost } from '../../src/host/host.ts'
import { backUp, listBackups } from '../../src/host/data.ts'
import { findRestorable } from '../../src/host/restore.ts'
import { createDatabase } from '../../src/store/data-dir/create-database.ts'
import { prepareDataDir } from '../../src/store/data-dir/data-dir.ts'
import { loadEnv, requireConfig } from '../helpers/config.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'otpd-backups-'))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Makes a data directory with a database. */
async function createData(env: Record<string, string>) {
  const dataDir = join(folder, 'data')
  const config = requireConfig(loadEnv({ OTPD_DATA_DIR: dataDir, ...env }))
  prepareDataDir(dataDir, () => {})
  createDatabase(dataDir, { configured: null, isForced: false, now: Date.now() })
  const host = await openHost({ config, access: 'write' })
  await host.createSetupToken()
  await host.close()
  return { dataDir, config }
}

test('a backup counts as made if the pruning after it fails, so that the next one is not due at once', async () => {
  const { dataDir, config } = await createData({ OTPD_BACKUP_KEEP: '1' })
  const { file } = await backUp({ config })
  // An old backup whose HMAC cannot be deleted.
  const old = join(dataDir, 'backups', backupFileName(Date.now() - 86_400_000))
  renameSync(file, old)
  rmSync(`${file}.hmac`)
  mkdirSync(`${old}.hmac`)
  const before = readLastBackup(dataDir)?.at ?? 0
  await expect(backUp({ config }, { prune: true })).rejects.toMatchObject({ reason: 'FILE_NOT_WRITABLE' })
  const last = readLastBackup(dataDir)
  expect(last?.at).toBeGreaterThan(before)
  const names = readdirSync(join(dataDir, 'backups')).filter((name) => timeInFileName(name) === last?.at)
  expect(names).toHaveLength(1)
})

test('the list shows the copies of upgrades and restores, by path if backups are kept elsewhere', async () => {
  const nas = join(folder, 'nas')
  mkdirSync(nas)
  const { dataDir, config } = await createData({ OTPD_BACKUP_TO: nas })
  const { file } = await backUp({ config })
  const copy = join(dataDir, 'backups', 'before-migration-2020-01-01T00-00-00-000Z.db')
  copyFileSync(file, copy)
  const replaced = join(dataDir, 'backups', 'before-restore-2019-01-01T00-00-00-000Z.db')
  copyFileSync(file, replaced)
  const names = async (from?: string) =>
    (await listBackups({ config }, { from, cwd: folder })).backups.map(({ name }) => name)
  expect(await names()).toEqual([basename(file), copy, replaced])
  expect(await names(nas)).toEqual([basename(file)])
  expect(await names(join(dataDir, 'backups'))).toEqual([basename(copy), basename(replaced)])
  await expect(names('')).rejects.toMatchObject({ reason: 'PLACE_INVALID' })
})

test('a copy of an upgrade is as old as its name says, wherever it was copied to', async () => {
  const { dataDir, config } = await createData({})
  const { file } = await backUp({ config })
  const copy = join(dataDir, 'backups', 'before-migration-2020-01-01T00-00-00-000Z.db')
  copyFileSync(file, copy)
  const found = await findRestorable({ config }, { name: copy, cwd: folder })
  expect(found.at).toBe('2020-01-01T00:00:00.000Z')
})

test('a folder is no backup, and the error names the newest in it', async () => {
  const { config } = await createData({})
  await expect(findRestorable({ config }, { name: folder, cwd: folder })).rejects.toMatchObject({
    reason: 'BACKUP_INVALID',
    remedy: `Restore the newest backup in it: otpd restore ${folder}/latest`,
  })
})
