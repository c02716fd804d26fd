import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath, runToEnd } from '../helpers/binary.ts'
import { codeBlocks, commandLines, readDocument } from '../helpers/guide-blocks.ts'
import { unpackDatabase } from '../upgrade/fixture.ts'
import { masterKey } from '../upgrade/instance.ts'

// Follows the guide on upgrading with a database of 0.1.0.

const guide = readDocument('src/docs/upgrading.md')
const folder = mkdtempSync(join(tmpdir(), 'otpd-upgrade-guide-'))
const dataDir = join(folder, 'data')
const backups = join(dataDir, 'backups')

beforeAll(() => {
  unpackDatabase('0.1.0', folder)
  mkdirSync(join(folder, 'bin'))
  symlinkSync(binaryPath, join(folder, 'bin', 'otpd'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const commandsBelow = (heading: string) => commandLines(codeBlocks(guide, 'sh', heading).join(''))

/** Types a line of the guide, with this data directory and the copy that the upgrade made. */
async function type(line: string) {
  const copy = readdirSync(dataDir).includes('backups')
    ? readdirSync(backups).find((name) => /^before-migration-.*\.db$/.test(name))
    : undefined
  const { stdout, stderr, exitCode } = await runToEnd(
    [
      'sh',
      '-c',
      line.replaceAll('/var/lib/otpd', dataDir).replace('before-migration-TIME.db', copy ?? 'missing.db'),
    ],
    {
      cwd: folder,
      env: {
        HOME: folder,
        PATH: `${join(folder, 'bin')}:${process.env.PATH ?? ''}`,
        OTPD_DATA_DIR: dataDir,
        OTPD_MASTER_KEY: masterKey,
      },
      input: '',
    },
  )
  return { line, exitCode, output: stdout + stderr }
}

test('a database of 0.1.0 is looked at, migrated, and put back', async () => {
  const before = commandsBelow('## Before')
  expect(before.map((line) => line.split(' ')[1])).toEqual(['version', 'backup', 'doctor'])
  const [version = '', backup = '', doctor = ''] = before
  expect(await type(version)).toMatchObject({ exitCode: 0, output: expect.stringContaining('pending') })
  expect(await type(backup)).toMatchObject({ exitCode: 0 })
  // No server runs.
  expect((await type(doctor)).output).toContain('pending migrations')

  const [status = '', up = ''] = commandsBelow('## Install and restart')
  expect((await type(status)).output).toContain('pending')
  expect(await type(up)).toMatchObject({ exitCode: 0 })
  expect((await type(status)).output).not.toContain('pending')

  const [restore = '', after = ''] = commandsBelow('## Going back')
  expect(await type(restore)).toMatchObject({ exitCode: 0 })
  expect((await type(after)).output).toContain('pending')
  expect(readdirSync(backups).some((name) => name.startsWith('before-restore-'))).toBe(true)
}, 60_000)
