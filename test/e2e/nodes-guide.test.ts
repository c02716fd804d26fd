import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
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

  /** Stops all nodes, which have logged no error but the outage, such as a privilege that their role lacks. */
  async function stopNodes() {
    const stopped = nodes.splice(0)
    expect(await Promise.all(stopped.map((node) => node.stop()))).toEqual(stopped.map(() => 0))
    for (const node of stopped) {
      const lines = node.log().split('\n')
      expect(lines.filter((line) => line.includes('"level":"error"') && !line.includes(outage))).toEqual([])
    }
  }
  const outage = 'the database is unavailable; callers are told to retry'
  /** @param env only the nodes of one test are stopped while the balancer calls them: the others need not drain */
  const startNodes = async (env: Record<string, string> = { OTPD_DRAIN_SECONDS: '0' }) => {
    for (const node of [1, 2, 3] as const)
      nodes.push(await run.startNode({ ...run.nodeEnvironment(node), ...env }))
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
    await startNodes({})
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

  /** Sends a code at the balancer. @returns what callers see of the answer, without its wording */
  async function trySend() {
    const variables = Object.entries(parseEnv(readFileSync(join(run.folder, '.env.otpd'), 'utf8')))
    const response = await fetch(`${run.balancerUrl}/v1/otp/send`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...Object.fromEntries(
          variables.map(([name, value]) => [name.replace('OTPD_', 'x-').replaceAll('_', '-'), value ?? '']),
        ),
      },
      body: JSON.stringify({ phone: '+14155550132' }),
    })
    const { error } = (await response.json()) as { error?: { code: string; traceId: string } }
    const isOfNode = response.headers.has('x-request-id')
    const retryAfter = response.headers.get('retry-after')
    return { status: response.status, code: error?.code, hasTrace: !!error?.traceId, retryAfter, isOfNode }
  }
  const unavailable = { status: 503, code: 'UNAVAILABLE', hasTrace: true, retryAfter: '1' }

  test('tells callers to retry while the database is away', async () => {
    const { node, database } = run.names
    await run.query(`alter role ${node} connection limit 0`)
    await run.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}' and usename = '${node}'`,
    )
    const areUnready = async () => {
      const probes = await Promise.all(nodes.map(({ url }) => fetch(`${url}/v1/health/ready`)))
      return probes.every(({ status }) => status === 503)
    }
    while (!(await areUnready())) expect(await trySend()).toEqual({ ...unavailable, isOfNode: true })
    // The balancer takes out every node meanwhile.
    for (const until = performance.now() + 1_000; performance.now() < until;)
      expect(await trySend()).toEqual({ ...unavailable, isOfNode: true })
    await run.query(`alter role ${node} connection limit -1`)
    while ((await trySend()).status !== 201) await Bun.sleep(20)
  })

  test('answers every call while a node is stopped, and while one is killed between calls', async () => {
    const [first, second] = nodes
    const stopping = new AbortController()
    const callUntilStopped = async () => {
      while (!stopping.signal.aborted) expect(await trySend()).toMatchObject({ status: 201 })
    }
    const calls = Promise.all([callUntilStopped(), callUntilStopped(), callUntilStopped()])
    expect(await first?.stop()).toBe(0)
    stopping.abort()
    await calls
    await second?.stop('SIGKILL')
    for (let call = 0; call < 8; call++) await sendCode()
    nodes = nodes.slice(2)
    await stopNodes()
    expect(await trySend()).toEqual({ ...unavailable, isOfNode: false })
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
