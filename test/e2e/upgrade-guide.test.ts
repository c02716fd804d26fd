import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath, runToEnd } from '../helpers/binary.ts'
import { connect } from '../../src/store/sqlite/database.ts'
import { readUpgradeProgress } from '../../src/store/data-dir/server-record.ts'
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

test('a server that upgrades answers 503 with the time to wait, and shows the progress', async () => {
  const home = mkdtempSync(join(tmpdir(), 'otpd-upgrading-'))
  unpackDatabase('0.1.0', home)
  const probe = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const { port } = probe
  await probe.stop(true)
  // Holds the migration, which waits five seconds for it.
  const other = connect(join(home, 'data/otpd.db'), 0)
  other.run('begin immediate')
  const env = { HOME: home, PATH: process.env.PATH ?? '', OTPD_MASTER_KEY: masterKey }
  const flags = ['--data-dir', join(home, 'data'), '--listen', `127.0.0.1:${port}`, '--log-format', 'json']
  const server = Bun.spawn([binaryPath, 'serve', ...flags], { env, stdout: 'ignore', stderr: 'ignore' })
  const call = async (path: string) => {
    for (;;) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined)
      if (response) return response
      await Bun.sleep(20)
    }
  }
  try {
    const refused = await call('/v1/otp/send')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([
      503,
      expect.stringMatching(/^\d+$/),
    ])
    expect(await refused.json()).toMatchObject({
      error: { code: 'UNAVAILABLE', message: expect.stringContaining('is upgrading its database (') },
    })
    expect((await call('/v1/health')).status).toBe(200)
    expect(await (await call('/v1/health/ready')).json()).toEqual({
      data: { status: 'not_ready', cause: 'upgrade' },
    })
    while (readUpgradeProgress(join(home, 'data')) === null) await Bun.sleep(20)
    other.run('rollback')
    while ((await call('/v1/health/ready')).status !== 200) await Bun.sleep(20)
    expect(readUpgradeProgress(join(home, 'data'))).toBeNull()
  } finally {
    other.close()
    server.kill()
    await server.exited
    rmSync(home, { recursive: true, force: true })
  }
}, 60_000)

test('a database of 0.1.0 is looked at, migrated, and put back', async () => {
  const before = commandsBelow('## Before')
  expect(before.map((line) => line.split(' ')[1])).toEqual(['version', 'backup', 'doctor'])
  const [version = '', backup = '', doctor = ''] = before
  expect(await type(version)).toMatchObject({ exitCode: 0, output: expect.stringContaining('pending') })
  expect(await type(backup)).toMatchObject({ exitCode: 0 })
  // No server runs.
  expect((await type(doctor)).output).toContain('pending migrations')

  const [status = '', up = ''] = commandsBelow('### The first start')
  expect((await type(status)).output).toContain('pending')
  expect(await type(up)).toMatchObject({ exitCode: 0 })
  expect((await type(status)).output).not.toContain('pending')

  const [restore = '', after = ''] = commandsBelow('## Going back')
  expect(await type(restore)).toMatchObject({ exitCode: 0 })
  expect((await type(after)).output).toContain('pending')
  expect(readdirSync(backups).some((name) => name.startsWith('before-restore-'))).toBe(true)
}, 60_000)
