import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { runCommand, type RunOptions } from '../helpers/run-command.ts'
import { createSharedDatabase, postgresUrl, type SharedDatabase } from '../helpers/shared-database.ts'

describe.skipIf(postgresUrl === undefined)('host commands on PostgreSQL', () => {
  let shared: SharedDatabase
  beforeAll(async () => {
    shared = await createSharedDatabase()
  })
  afterAll(() => shared.dispose())

  const run = (args: string[], options: RunOptions = {}) =>
    runCommand(shared.folder, args, { ...options, env: { ...shared.env, ...options.env } })

  /** Runs a command that must succeed. @returns the data that it prints with --json */
  async function json(args: string[], options: RunOptions = {}) {
    const { exitCode, stdout, stderr } = await run([...args, '--json'], options)
    expect(stderr).not.toContain('Error')
    expect(exitCode).toBe(0)
    return JSON.parse(stdout).data
  }

  test('read nothing from an empty database', async () => {
    const { exitCode, stderr } = await run(['admin', 'list'])
    expect(stderr).toContain('The database is empty.')
    expect(exitCode).toBe(5)
    expect(await shared.query('select 1 from pg_tables where schemaname = current_schema()')).toEqual([])
  })

  test('look for a node in an empty database and find none', async () => {
    const doctor = await run(['doctor'])
    expect([doctor.exitCode, doctor.stdout]).toEqual([8, expect.stringContaining('the database is empty')])
    expect((await run(['config', 'show'])).exitCode).toBe(0)
    for (const args of [['provider', 'list'], ['guard', 'status'], ['alerts']])
      expect((await run(args)).stderr).toContain('The database is empty.')
  })

  test('ask for the settings that they use: no public URL, and a master key for all but migrations', async () => {
    const { OTPD_PUBLIC_URL: _url, OTPD_MASTER_KEY_FILE = '', ...env } = shared.env
    const status = await runCommand(shared.folder, ['migrate', 'status'], { env })
    expect(status.exitCode).toBe(0)
    const keyless = await runCommand(shared.folder, ['admin', 'list'], { env })
    expect(keyless.stderr).toContain('Nodes share one master key: set OTPD_MASTER_KEY_FILE.')
    expect(keyless.stderr).not.toContain('OTPD_PUBLIC_URL')
    const listed = await runCommand(shared.folder, ['admin', 'list'], {
      env: { ...env, OTPD_MASTER_KEY_FILE },
    })
    expect(listed.stderr).toContain('The database is empty.')
  })

  test('end at once with exit code 3 while the database is away', async () => {
    const { exitCode, stderr } = await run(['admin', 'list'], {
      env: { OTPD_DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/otpd' },
    })
    expect(stderr).toContain('The database cannot be reached (connection refused, ECONNREFUSED).')
    expect(stderr).not.toContain('hunter2')
    expect(exitCode).toBe(3)
  })

  test('manage accounts that every node knows', async () => {
    await json(['migrate', 'up'])
    const input = 'correct horse battery'
    await json(['admin', 'create', '--email', 'ada@example.com', '--password-stdin'], { input })
    const nodes = await Promise.all(['a', 'b'].map((name) => shared.startNode({ env: { OTPD_NODE: name } })))
    try {
      const { idToken } = await json(['admin', 'token', 'ada@example.com'])
      for (const node of nodes) {
        // The ready line has the node's own address, not the public URL.
        expect(node.url).toMatch(/^http:\/\/127\.0\.0\.1:\d{4,5}$/)
        const response = await fetch(`${node.url}/v1/developer/me`, {
          headers: { authorization: `Bearer ${idToken}` },
        })
        expect(response.status).toBe(200)
      }
      expect(await json(['admin', 'list'])).toMatchObject([{ email: 'ada@example.com' }])
      expect(await json(['admin', 'unlock', '+14155550100'])).toMatchObject({ checkBudgets: 0 })
      const erased = await run(['admin', 'erase', '+14155550100', '--yes'])
      expect(erased).toMatchObject({
        exitCode: 8,
        stdout: '▲ Nothing found for +14155550100 in the database\n',
      })
      expect(await json(['guard', 'status'])).toMatchObject({ mode: 'monitor' })
      expect(await json(['audit', 'verify'])).toMatchObject({ isUnbroken: true })
      const actions = (await json(['admin', 'audit'])).map(({ action }: { action: string }) => action)
      expect(actions).toContain('account.created')
    } finally {
      await Promise.all(nodes.map((node) => node.stop()))
    }
  })

  test('say why the database cannot store anything, with exit code 3', async () => {
    await shared.query(`create function refuse() returns trigger language plpgsql
      as $$ begin raise 'No space left on device' using errcode = '53100'; end $$`)
    await shared.query(
      'create trigger refuse before insert on developers for each row execute function refuse()',
    )
    const create = ['admin', 'create', '--email', 'bea@example.com', '--password-stdin']
    const { exitCode, stderr } = await run(create, { input: 'correct horse battery' })
    expect(stderr).toContain('The disk of the database is full (53100).')
    expect(exitCode).toBe(3)
    await shared.query('drop function refuse cascade')
  })

  test.each([
    ['audit_entries, developers', [['audit', 'verify'], ['admin', 'list'], ['doctor']]],
    ['migrations', [['audit', 'verify'], ['migrate', 'status'], ['serve']]],
  ])('do not wait without limit behind a lock of %s', async (tables, commands) => {
    const client = new Client(shared.url)
    await client.connect()
    await client.query(`begin; lock table ${tables} in access exclusive mode`)
    const results = await Promise.all(commands.map((args) => run(args)))
    await client.end()
    for (const { exitCode, stdout, stderr } of results) {
      expect(`${stdout}${stderr}`).toContain('pg_stat_activity')
      expect([3, 8]).toContain(exitCode)
    }
  })

  test('find an audit entry that was changed', async () => {
    const [entry] = await shared.query<{ id: string; action: string }>(
      'select id, action from audit_entries limit 1',
    )
    await shared.query('update audit_entries set action = $1 where id = $2', ['login.failed', entry?.id])
    const { exitCode, stdout } = await run(['audit', 'verify', '--json'])
    expect(JSON.parse(stdout).data.breaks).toMatchObject([{ kind: 'entry_changed', entryId: entry?.id }])
    expect(exitCode).toBe(8)
    await shared.query('update audit_entries set action = $1 where id = $2', [entry?.action, entry?.id])
  })

  test.each([
    [['backup'], 'Use pg_dump'],
    [['restore', 'backup.db', '--yes'], 'pg_restore'],
    [['admin', 'rotate-master-key', '--yes'], 'name it with --new-key-file FILE'],
  ])('%p says what to use instead', async (args, remedy) => {
    const { exitCode, stderr } = await run(args)
    expect(stderr).toContain(remedy)
    expect(exitCode).toBe(6)
  })

  test('doctor names the nodes, and settings that differ', async () => {
    const nodes = await Promise.all([
      shared.startNode({ env: { OTPD_NODE: 'a' } }),
      shared.startNode({ env: { OTPD_NODE: 'b', OTPD_SIGNUP: 'open' } }),
    ])
    const { stdout } = await run(['doctor', '--json'])
    const { checks } = JSON.parse(stdout).data
    expect(checks).toContainEqual(expect.objectContaining({ name: 'database', status: 'ok' }))
    expect(checks).toContainEqual(
      expect.objectContaining({ message: 'the configuration of a differs from that of b: signup' }),
    )
    await Promise.all(nodes.map((node) => node.stop()))
    expect(await shared.query('select name from nodes')).toEqual([])
  })

  test('speak of the nodes that run, of their own machine first', async () => {
    const file = join(shared.folder, 'node.toml')
    const secret = 'twilio-token-0123456789abcdef'
    const provider = {
      name: 'main',
      kind: 'twilio',
      accountSid: `AC${'0'.repeat(32)}`,
      authTokenEnv: 'TOKEN',
    }
    const lines = Object.entries({ ...provider, from: '+12025550100' }).map(([k, v]) => `${k} = "${v}"`)
    writeFileSync(file, ['[[providers]]', ...lines].join('\n'), { mode: 0o600 })
    const settings = { OTPD_GUARD_COUNTRIES: 'DE', OTPD_CONFIG: file, TOKEN: secret }
    const nodes = [
      await shared.startNode({ env: { OTPD_NODE: 'a', ...settings } }),
      await shared.startNode({ env: { OTPD_NODE: 'b', ...settings } }),
      await shared.startNode({ env: { OTPD_NODE: 'c', OTPD_SIGNUP: 'open' } }),
    ]
    const [{ pid } = { pid: 0 }] = nodes
    const shown = await run(['config', 'show'])
    expect(shown.stdout).toMatch(/^guard\.countries +DE +OTPD_GUARD_COUNTRIES$/m)
    expect(shown.stderr).toContain(`These are the settings of node a (process ${pid}, since `)
    expect(shown.stderr).toContain('The same configuration runs on b.\n')
    expect(shown.stderr).toContain('Another configuration runs on c: otpd doctor names the differences.')
    expect(shown.stderr).toContain('This shell has another guard.countries: -\n')
    expect(shown.stderr).not.toContain('server.node')
    const own = await run(['config', 'show'], { env: { OTPD_NODE: 'c' } })
    expect(own.stdout).toMatch(/^auth\.signup +open +OTPD_SIGNUP$/m)
    expect(own.stderr).toContain('These are the settings of node c (')
    expect((await run(['provider', 'list'])).stdout).toMatch(/^main +Twilio.* ready$/m)
    expect((await run(['guard', 'status'])).stdout).toMatch(/COUNTRY_NOT_ALLOWED +0 +0 +only DE/)
    expect(JSON.stringify(await shared.query('select * from nodes'))).not.toContain(secret)
    await Promise.all(nodes.map((node) => node.stop()))
    expect((await run(['config', 'show'])).stderr).toBe('')
  })

  test('rotate-master-key lets nodes change to the new key one after the other', async () => {
    const file = join(shared.folder, 'new-key')
    writeFileSync(file, randomBytes(32).toString('hex'), { mode: 0o600 })
    const newKey = { OTPD_MASTER_KEY_FILE: file }
    const old = await shared.startNode({ env: { OTPD_NODE: 'old' } })
    const begin = (...flags: string[]) =>
      json(['admin', 'rotate-master-key', '--new-key-file', file, ...flags, '--yes'])
    expect(await begin()).toMatchObject({ state: 'both', areDataKeysNew: false })
    const unfollowed = await run(['admin', 'rotate-master-key', '--finish', '--yes'], { env: newKey })
    expect(unfollowed.stderr).toContain('Nodes run with the old master key: old.')
    expect(unfollowed.exitCode).toBe(6)
    expect(await begin('--compromised')).toMatchObject({ state: 'both', areDataKeysNew: false })
    const early = await run(['admin', 'rotate-master-key', '--finish', '--yes'])
    expect(early.stderr).toContain('This command still reads the old master key.')
    const fresh = await shared.startNode({ env: { OTPD_NODE: 'new', ...newKey } })

    // The data keys are replaced only while no node writes with the old ones.
    const refused = await run(['admin', 'rotate-master-key', '--finish', '--yes'], { env: newKey })
    expect(refused.stderr).toContain('The data keys cannot be replaced while nodes run: new, old.')
    expect(refused.exitCode).toBe(6)
    await Promise.all([old.stop(), fresh.stop()])
    const finished = await json(['admin', 'rotate-master-key', '--finish', '--yes'], { env: newKey })
    expect(finished).toMatchObject({ state: 'replaced', areDataKeysNew: true, canceledCodes: 0 })

    const { exitCode, stderr } = await run(['serve'])
    expect(stderr).toContain('The database belongs to another master key.')
    expect(exitCode).toBe(9)
    expect(await json(['audit', 'verify'], { env: newKey })).toMatchObject({ isUnbroken: true })
    const again = await shared.startNode({ env: newKey })
    expect(await again.stop()).toBe(0)
  })
})
