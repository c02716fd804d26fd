import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { runCommand } from '../helpers/run-command.ts'

const password = 'correct horse battery'

describe('otpd audit verify', () => {
  let server: RunningServer
  beforeAll(async () => {
    server = await startServer()
    const email = 'ada@example.com'
    const login = ['login', '--setup-token', server.setupToken(), '--email', email, '--password-stdin']
    await server.otpd(login, { input: password })
    await server.otpd(['login', '--email', email, '--password-stdin'], { input: 'wrong horse battery' })
    await server.otpd(['project', 'create', 'Shop'])
    await server.otpd(['project', 'create', 'Forum'])
  })
  afterAll(() => server.stop())

  const verify = (...args: string[]) =>
    server.otpd(['audit', 'verify', ...args], { env: { OTPD_DATA_DIR: server.dataDir } })
  const tamper = (sql: string) => {
    const database = new Database(join(server.dataDir, 'otpd.db'))
    database.run('PRAGMA busy_timeout = 5000')
    database.run(sql)
    database.close()
  }

  test('proves the trail of a running server, with failed logins', async () => {
    const result = await verify()
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    expect(result.stdout).toMatch(
      /^✓ The audit trail is unbroken\n {2}Entries +5\n {2}Chains +2\n {2}Since +2/,
    )
    const { data } = JSON.parse((await verify('--json')).stdout)
    expect(data).toMatchObject({ isUnbroken: true, breaks: [], entries: 5, deleted: 0 })
    expect(data.heads).toContainEqual({ chain: 'host', entries: 0, lastHash: '' })
    const { stdout } = await server.otpd(['audit', '--action', 'login.failed', '--json'])
    expect(JSON.parse(stdout).data).toHaveLength(1)
  })

  test('proves it after a leaked master key was replaced', async () => {
    const rotate = ['admin', 'rotate-master-key', '--compromised', '--yes']
    const rotation = await server.otpd(rotate, { env: { OTPD_DATA_DIR: server.dataDir } })
    expect(rotation.exitCode).toBe(0)
    expect(await verify()).toMatchObject({ exitCode: 0 })
  })

  test('names the first broken entry, exits 8, and so does doctor', async () => {
    tamper(`update audit_entries set detail = 'harmless' where action = 'login.failed'`)
    // A later entry does not repair the chain.
    await server.otpd(['project', 'create', 'Blog'])
    const result = await verify()
    expect(result).toMatchObject({ exitCode: 8, stderr: '' })
    expect(result.stdout).toMatch(/^✗ The audit trail was tampered with\n/)
    expect(result.stdout).toMatch(/\nCHAIN +ENTRY +FINDING +ID\ndev_\S+ +\d +entry was changed +aud_\S+\n$/)
    const { data } = JSON.parse((await verify('--json')).stdout)
    expect(data).toMatchObject({ isUnbroken: false, breaks: [{ kind: 'entry_changed' }] })

    const doctor = await server.otpd(['doctor', '--json'], { env: { OTPD_DATA_DIR: server.dataDir } })
    expect(doctor.exitCode).toBe(8)
    const checks: Array<{ name: string }> = JSON.parse(doctor.stdout).data.checks
    expect(checks.find(({ name }) => name === 'audit trail')).toMatchObject({
      status: 'fault',
      message: expect.stringMatching(/^tampered with: chain dev_\S+ at entry \d$/),
    })
  })
})

test('otpd audit verify creates and changes nothing where there is no database', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-no-audit-'))
  try {
    const { mode } = statSync(folder)
    const result = await runCommand(folder, ['audit', 'verify', '--data-dir', folder])
    expect(result).toMatchObject({ exitCode: 5, stdout: '' })
    expect(result.stderr).toContain(`There is no database in ${folder}.`)
    expect([readdirSync(folder), statSync(folder).mode]).toEqual([[], mode])
    const missing = join(folder, 'missing')
    expect(await runCommand(folder, ['audit', 'verify', '--data-dir', missing])).toMatchObject({
      exitCode: 5,
    })
    expect(existsSync(missing)).toBe(false)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
