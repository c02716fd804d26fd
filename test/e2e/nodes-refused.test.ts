import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { runBinary } from '../helpers/binary.ts'
import { startFakePostgres } from '../helpers/fake-postgres.ts'
import { canMoveClocks, createProcessClock } from '../helpers/process-clock.ts'
import { createSharedDatabase, postgresUrl, type SharedDatabase } from '../helpers/shared-database.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'

const password = 'hunter2-hunter2'

describe.skipIf(postgresUrl === undefined)('serve on PostgreSQL refuses', () => {
  let shared: SharedDatabase
  beforeAll(async () => {
    shared = await createSharedDatabase()
  })
  afterAll(() => shared.dispose())

  /** Runs `otpd serve` with the variables of a node; undefined removes one. */
  async function serve(changes: Record<string, string | undefined>, args: string[] = []) {
    const merged = { ...shared.env, OTPD_LISTEN: '127.0.0.1:0', HOME: shared.folder, ...changes }
    const env = Object.fromEntries(
      Object.entries(merged).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
    const { exitCode, stdout, stderr } = await runBinary(shared.folder, ['serve', ...args], { env })
    const output = stdout + stderr
    expect(output).not.toContain(password)
    expect(output).not.toContain('postgres://u')
    return { exitCode, output }
  }

  const withPassword = (rest: string) => `postgres://u:${password}@${rest}`
  const oneOf = 'Name one of them: the database is in PostgreSQL, or in a directory.'
  const sslmode = 'Say sslmode=verify-full, or sslmode=disable if the network is yours.'

  test.each<[string, Record<string, string | undefined>, string[]]>([
    ['a data directory', { OTPD_DATA_DIR: '/tmp/otpd' }, ['OTPD_DATABASE_URL names a database too.', oneOf]],
    ['development mode', { OTPD_DEV: '1' }, [oneOf]],
    [
      'no master key',
      { OTPD_MASTER_KEY_FILE: undefined },
      ['There is no master key.', 'Nodes share one master key: set OTPD_MASTER_KEY_FILE.'],
    ],
    [
      'an empty master key',
      { OTPD_MASTER_KEY_FILE: undefined, OTPD_MASTER_KEY: '' },
      ['Nodes share one master key: set OTPD_MASTER_KEY_FILE.'],
    ],
    [
      'no public URL with the built-in issuer',
      { OTPD_PUBLIC_URL: undefined },
      ["Tokens of one node must hold at the next: set OTPD_PUBLIC_URL to the balancer's address."],
    ],
    [
      'another scheme',
      { OTPD_DATABASE_URL: `mysql://u:${password}@db.example/otpd` },
      ['The scheme is not postgres:// or postgresql://.'],
    ],
    ['no database name', { OTPD_DATABASE_URL: withPassword('127.0.0.1/') }, ['There is no database name.']],
    ['no host', { OTPD_DATABASE_URL: `postgres:///otpd?password=${password}` }, ['There is no host.']],
    [
      'a character that is not escaped',
      { OTPD_DATABASE_URL: `postgres://u:${password}/@127.0.0.1/otpd` },
      ['The host or the port is not valid.', '@ is %40'],
    ],
    [
      'a % that is not escaped',
      { OTPD_DATABASE_URL: `postgres://u:${password}%@127.0.0.1/otpd` },
      ['Write %25 instead of %.'],
    ],
    [
      'a URL where the name of a file is meant',
      { OTPD_DATABASE_URL: undefined, OTPD_DATABASE_URL_FILE: `postgres://u:${password}@db.example/otpd` },
      ['There is no file of that name.'],
    ],
    [
      'two URLs',
      { OTPD_DATABASE_URL_FILE: '/nope/url' },
      ['The database is also named by OTPD_DATABASE_URL.'],
    ],
    ['another host without sslmode', { OTPD_DATABASE_URL: withPassword('db.example/otpd') }, [sslmode]],
    ['sslmode=require', { OTPD_DATABASE_URL: withPassword('db.example/otpd?sslmode=require') }, [sslmode]],
    ['sslmode=prefer', { OTPD_DATABASE_URL: withPassword('127.0.0.1/otpd?sslmode=prefer') }, [sslmode]],
    [
      'an unknown sslmode',
      { OTPD_DATABASE_URL: withPassword(`127.0.0.1/otpd?sslmode=${password}`) },
      ['The sslmode is unknown.', sslmode],
    ],
    [
      'several servers, and not which of them',
      { OTPD_DATABASE_URL: withPassword('127.0.0.1:1,127.0.0.1:2/otpd') },
      ['Say target_session_attrs=read-write: otpd uses the server that takes writes.'],
    ],
    [
      'servers that only read',
      { OTPD_DATABASE_URL: withPassword('127.0.0.1/otpd?target_session_attrs=standby') },
      ['target_session_attrs is not read-write.'],
    ],
    [
      'several servers, one without sslmode',
      { OTPD_DATABASE_URL: withPassword('127.0.0.1,db.example/otpd?target_session_attrs=read-write') },
      [sslmode],
    ],
    [
      'an unknown parameter',
      { OTPD_DATABASE_URL: withPassword('127.0.0.1/otpd?sslrootcrt=/etc/ca.pem') },
      ['The URL has an unknown parameter.', 'Did you mean sslrootcert? Known are sslmode, sslrootcert,'],
    ],
    ['too few connections', { OTPD_DATABASE_CONNECTIONS: '3' }, ['Use a whole number from 4 to 100.']],
    ['another kind of statements', { OTPD_DATABASE_STATEMENTS: 'none' }, ['Use named or unnamed.']],
    ['the name of a node with spaces', { OTPD_NODE: 'node one' }, ['"node one" is not the name of a node.']],
    [
      'another master key',
      { OTPD_MASTER_KEY_FILE: undefined, OTPD_MASTER_KEY: '00112233'.repeat(8) },
      ['The database belongs to another master key.'],
    ],
  ])('%s', async (name, changes, texts) => {
    if (name === 'another master key') {
      const node = await shared.startNode()
      await node.stop()
    }
    const { exitCode, output } = await serve(changes)
    for (const text of texts) expect(output).toContain(text)
    expect(exitCode).toBe(9)
  })

  test('a file with the URL that other users can read', async () => {
    const file = join(shared.folder, 'url')
    writeFileSync(file, withPassword('127.0.0.1/otpd'))
    chmodSync(file, 0o644)
    const { exitCode, output } = await serve({ OTPD_DATABASE_URL: undefined, OTPD_DATABASE_URL_FILE: file })
    expect(output).toContain('Other users can read')
    expect(exitCode).toBe(9)
  })

  test('--data-dir, but not the state directory that systemd names', async () => {
    const { exitCode, output } = await serve({}, ['--data-dir', '/tmp/otpd'])
    expect(output).toContain(oneOf)
    expect(exitCode).toBe(9)
    const node = await shared.startNode({ env: { STATE_DIRECTORY: '/nope' } })
    expect(await node.stop()).toBe(0)
  })

  describe('a server that', () => {
    test.each([
      ['28P01', '', ['refused the user name or the password']],
      ['3D000', '', ['has no database of that name']],
      ['22023', '', ['The database refused the connection (22023).']],
      ['42501', '', ['may not connect to the database', 'grant connect on database NAME to ROLE']],
      ['28000', '?sslmode=verify-full', ['The database does not support TLS.']],
      [
        '28000',
        '?sslmode=verify-full&sslrootcert=/nope/ca.pem',
        ['A file that the URL of the database names cannot be read (no such file or folder, ENOENT).'],
      ],
    ])('answers %s (URL with %p)', async (code, query, texts) => {
      const server = await startFakePostgres({ code })
      try {
        const { exitCode, output } = await serve({
          OTPD_DATABASE_URL: withPassword(`localhost:${server.port}/otpd${query}`),
        })
        for (const text of texts) expect(output).toContain(text)
        expect(exitCode).toBe(9)
        expect(server.connections()).toBeLessThanOrEqual(1)
      } finally {
        await server.stop()
      }
    })

    test.skipIf(!hasOpenssl)('has a certificate that is not trusted', async () => {
      const server = await startFakePostgres({ code: '28P01', tls: makeCertificate('localhost') })
      try {
        const { exitCode, output } = await serve({
          OTPD_DATABASE_URL: withPassword(`localhost:${server.port}/otpd?sslmode=verify-full`),
        })
        expect(output).toContain('The certificate of the database is not trusted')
        expect(exitCode).toBe(9)
      } finally {
        await server.stop()
      }
    })

    test('does not answer', async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      try {
        const address = server.address()
        const port = typeof address === 'object' ? address?.port : undefined
        const { exitCode, stderr } = await runBinary(shared.folder, ['migrate', 'status'], {
          env: { ...shared.env, OTPD_DATABASE_URL: withPassword(`localhost:${port}/otpd?sslmode=disable`) },
        })
        expect(stderr).toContain('The database did not answer within 5 s (ETIMEDOUT).')
        expect(exitCode).toBe(3)
      } finally {
        server.close()
      }
    })

    test('stays away for 30 seconds', async () => {
      const server = await startFakePostgres({ code: '57P03' })
      try {
        const { exitCode, output } = await serve({
          OTPD_DATABASE_URL: withPassword(`localhost:${server.port}/otpd`),
        })
        const lines = output.split('the database is unavailable; trying again').length - 1
        expect(lines).toBeGreaterThanOrEqual(25)
        expect(lines).toBeLessThanOrEqual(30)
        expect(output).toContain('The database cannot be reached (57P03).')
        expect(exitCode).toBe(3)
      } finally {
        await server.stop()
      }
    })

    test('has synchronous_commit=off', async () => {
      await shared.alter('set synchronous_commit = off')
      try {
        const { exitCode, output } = await serve({ OTPD_DATABASE_UNSAFE: undefined })
        expect(output).toContain('Acknowledged codes would be lost')
        expect(exitCode).toBe(9)
      } finally {
        await shared.alter('reset all')
      }
    })

    test('takes no writes for 30 seconds, as in a failover', async () => {
      await shared.alter('set default_transaction_read_only = on')
      try {
        const { exitCode, output } = await serve({})
        expect(output).toMatch(/trying again for 30 seconds cause="the database accepts no writes/)
        expect(output).toContain('The database accepts no writes (default_transaction_read_only=on).')
        expect(exitCode).toBe(3)
      } finally {
        await shared.alter('reset all')
      }
    })
  })

  test('a database of another program', async () => {
    const other = await createSharedDatabase()
    try {
      await other.query('create table customers (id int)')
      const { exitCode, output } = await serve({ OTPD_DATABASE_URL: other.url })
      expect(output).toContain('The database was not created by otpd.')
      expect(exitCode).toBe(9)
    } finally {
      await other.dispose()
    }
  })

  test('a newer schema, and an older one with --no-migrate', async () => {
    const other = await createSharedDatabase()
    try {
      const node = await other.startNode()
      await node.stop()
      await other.query(`insert into migrations values ('9999_future', 'x', 0, 9999)`)
      const newer = await serve({
        OTPD_DATABASE_URL: other.url,
        OTPD_MASTER_KEY_FILE: other.env.OTPD_MASTER_KEY_FILE,
      })
      expect(newer.output).toContain(
        'The database is newer than this otpd: its nodes must know migration 9999.',
      )
      expect(newer.exitCode).toBe(9)
      await other.query(`delete from migrations where name > '0017'`)
      const older = await serve({ OTPD_DATABASE_URL: other.url, OTPD_NO_MIGRATE: '1' })
      expect(older.output).toContain('The database is older than this otpd.')
      expect(older.output).toContain('otpd migrate up')
      expect(older.exitCode).toBe(9)
    } finally {
      await other.dispose()
    }
  })

  test.skipIf(!canMoveClocks)(
    'a clock that differs by more than 30 seconds, and warns of one second',
    async () => {
      const clock = createProcessClock(shared.folder)
      try {
        clock.setTimeOfDay(45_000)
        const { exitCode, output } = await serve(clock.env)
        expect(output).toContain("This machine's clock is 45.0 s ahead of the database's.")
        expect(exitCode).toBe(9)
        clock.setTimeOfDay(-5_000)
        const node = await shared.startNode({ env: clock.env })
        await node.waitForLog("this machine's clock is 5.0 s behind the database's")
        expect(await node.stop()).toBe(0)
      } finally {
        clock.close()
      }
    },
  )
})
