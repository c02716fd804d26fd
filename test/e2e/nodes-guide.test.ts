import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runBinary, startServer, type RunningServer } from '../helpers/binary.ts'
import { findProgram, startExternalProgram, type ExternalProgram } from '../helpers/external-program.ts'
import { createGuideRun, missingPrograms, type GuideRun } from '../helpers/nodes-guide.ts'
import { runPgbouncer } from '../helpers/pgbouncer.ts'
import { postgresUrl } from '../helpers/shared-database.ts'

if (missingPrograms.length > 0)
  process.stderr.write(`Skipped: the guide on many nodes. Install ${missingPrograms.join(', ')} to run it.\n`)

/** Follows the guide from its first block to its last. Each test continues where the one before it ended. */
describe.skipIf(postgresUrl === undefined || missingPrograms.length > 0)('the guide on many nodes', () => {
  let run: GuideRun
  let nodes: RunningServer[] = []
  let balancer: ExternalProgram | undefined
  let pendingCode = { requestId: '', code: '' }

  beforeAll(async () => {
    run = await createGuideRun(postgresUrl ?? '')
  })
  afterAll(async () => {
    await balancer?.stop()
    await stopNodes()
    await run.dispose()
  })

  /** Stops all nodes, which have logged no error, such as a privilege that their role lacks. */
  async function stopNodes() {
    for (const node of nodes.splice(0)) {
      expect(await node.stop()).toBe(0)
      expect(node.log()).not.toContain('"level":"error"')
    }
  }
  const startNodes = async () => {
    for (const node of [1, 2, 3] as const) nodes.push(await run.startNode(run.nodeEnvironment(node)))
  }

  /** Runs a command of a backend or a developer. @param server default the balancer */
  async function otpd(command: string, { server = run.balancerUrl, input = '' } = {}) {
    const result = await runBinary(run.folder, command.split(' '), {
      env: { OTPD_SERVER: server },
      input,
      cwd: run.folder,
    })
    expect({ command, ...result }).toMatchObject({ command, exitCode: 0 })
    return result.stdout
  }
  const credentials = '--env-file .env.otpd'

  async function sendCode(server?: string) {
    const sent = await otpd(`otp send +14155550132 ${credentials} --json`, { ...(server && { server }) })
    const { data }: { data: { requestId: string } } = JSON.parse(sent)
    return data.requestId
  }

  test('starts from a node on SQLite', async () => {
    const sole = await startServer({ dataDir: join(run.folder, 'var/lib/otpd'), home: run.folder })
    const server = sole.url
    const login = `login --setup-token ${sole.setupToken()} --email ada@example.com --password-stdin`
    await otpd(login, { server, input: 'correct horse battery' })
    await otpd('project create shop', { server })
    await otpd(`app create web --project shop --env live ${credentials}`, { server })
    const requestId = await sendCode(server)
    const inbox: { data: { code: string }[] } = JSON.parse(await otpd('inbox --json', { server }))
    pendingCode = { requestId, code: inbox.data[0]?.code ?? '' }
    expect(await sole.stop()).toBe(0)
  })

  test('moves the data', async () => {
    await run.sql('create role')
    await run.sql('alter default privileges')
    await run.shell('cp /var/lib/otpd/master.key')
    const moved = await run.shell('migrate to-postgres --dry-run')
    expect(moved).toContain('The data directory can be moved')
    expect(moved).toContain('Moved to PostgreSQL, and compared')
    await run.sql('revoke update, delete on audit_entries')
  })

  test('starts three nodes behind the balancer, where codes of before are verified', async () => {
    await run.shell('systemctl enable --now otpd')
    await startNodes()
    run.writeFile('sh', 'OTPD_DATABASE_URL_FILE=/etc/otpd/database-url\n')
    const haproxy = findProgram('haproxy') ?? ''
    const config = run.writeFile('haproxy', 'backend nodes')
    balancer = await startExternalProgram([haproxy, '-W', '-db', '-f', config], 'Loading success')
    const { requestId, code } = pendingCode
    expect(await otpd(`otp verify ${requestId} ${code} ${credentials}`)).toContain('is verified')
    const checked = await run.shell('otpd doctor')
    expect(checked).toContain('otp-1, otp-2, otp-3; one configuration')
    // As the leader does, whose role must not change the schema.
    const partition = "select otpd_make_partition('otp_requests', '209912', 'otp_7', 'otp_8')"
    expect(await run.query(partition, run.names.node)).toEqual([{ otpd_make_partition: true }])
  })

  test('answers every call while a node is stopped, and while one is killed between calls', async () => {
    const [first, second] = nodes
    const stopped = first?.stop()
    for (let call = 0; call < 8; call++) await sendCode()
    expect(await stopped).toBe(0)
    await second?.stop('SIGKILL')
    for (let call = 0; call < 8; call++) await sendCode()
    nodes = nodes.slice(2)
    await stopNodes()
  })

  test('works through a connection pooler', async () => {
    const pooler = await runPgbouncer(run.block('ini', '[pgbouncer]'))
    try {
      const [, name = '', value = ''] = /^(OTPD_\w+)=(.*)$/m.exec(run.block('sh', 'STATEMENTS')) ?? []
      const url = `postgres://${run.names.node}@127.0.0.1:${run.poolerPort}/${run.names.database}`
      const { OTPD_DATABASE_URL_FILE: _, ...env } = run.nodeEnvironment(1)
      nodes.push(await run.startNode({ ...env, OTPD_DATABASE_URL: url, [name]: value }))
      await sendCode(nodes[0]?.url)
      await stopNodes()
    } finally {
      await pooler.stop()
    }
  })

  test('restores a dump', async () => {
    const count = async () => run.query('select count(*)::int as requests from otp_requests')
    const before = await count()
    await run.shell('pg_dump')
    await startNodes()
    await sendCode(nodes[0]?.url)
    await stopNodes()
    expect(await count()).not.toEqual(before)
    await run.sql('drop owned')
    await run.shell('pg_restore')
    expect(await count()).toEqual(before)
  })

  test('upgrades nodes that serve', async () => {
    await startNodes()
    expect(await run.shell('systemctl restart otpd\ncurl')).toContain('up to date')
    await sendCode()
    await stopNodes()
  })

  test('names settings of PostgreSQL that exist', async () => {
    const lines = run.block('ini', 'synchronous_standby_names').matchAll(/^(\w+) = /gm)
    const settings = [...lines].map(([, name]) => name ?? '')
    const list = settings.map((name) => `'${name}'`).join(', ')
    expect(settings).toHaveLength(2)
    expect(await run.query(`select name from pg_settings where name in (${list})`)).toHaveLength(2)
  })

  test('goes back to SQLite', async () => {
    await run.shell('# going back')
    const sole = await startServer({ dataDir: join(run.folder, 'var/lib/otpd'), home: run.folder })
    await sendCode(sole.url)
    expect(await sole.stop()).toBe(0)
  })

  test('sets up a new installation', async () => {
    const other = await createGuideRun(postgresUrl ?? '')
    try {
      await other.sql('create role')
      await other.sql('alter default privileges')
      writeFileSync(join(other.folder, 'var/lib/otpd/master.key'), `${'0123456789abcdef'.repeat(4)}\n`)
      writeFileSync(join(other.folder, 'password'), 'correct horse battery')
      await other.shell('cp /var/lib/otpd/master.key')
      run.block('sh', '# new installation')
      expect(await other.shell('# new installation')).toContain('ada@example.com')
      const node = await other.startNode(other.nodeEnvironment(1))
      expect(await node.stop()).toBe(0)
    } finally {
      await other.dispose()
    }
  })

  test('has no block that was not run', () => {
    expect(run.unused()).toEqual([])
  })
})
