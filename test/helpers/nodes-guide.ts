import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import { binaryPath, runToEnd, startServer } from './binary.ts'
import { findProgram } from './external-program.ts'
import { findUnusedPort } from './unused-port.ts'

const root = join(import.meta.dir, '../..')

/** Lets `otpd doctor` find the one fault that servers of tests may have: that they run without fsync. */
const doctor = `otpd() {
  [ "$1" = doctor ] || { command otpd "$@"; return; }
  command otpd "$@" > doctor.txt 2>&1 && status=0 || status=$?
  cat doctor.txt
  [ $status = 0 ] || { grep -q '^✗ durability' doctor.txt && grep -q '^1 fault,' doctor.txt; }
}
`

/** The server of the tests may run without fsync; a test sends more than a user may. */
const testSettings = { OTPD_DATABASE_UNSAFE: '1', OTPD_SEND_PER_MINUTE: '0', OTPD_PHONE_SEND_BUDGET: 'off' }

export type GuideRun = Awaited<ReturnType<typeof createGuideRun>>

/**
 * Prepares to run the blocks of the guide on several nodes: finds them by a text that they have, and puts the addresses,
 * names and folders of the test in the place of those of the guide.
 *
 * @param serverUrl PostgreSQL server, with a superuser
 */
export async function createGuideRun(serverUrl: string) {
  const guide = readFileSync(join(root, 'src/docs/many-nodes.md'), 'utf8')
  const blocks = [...guide.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({
    language,
    text,
  }))
  const used = new Set<string>()
  const folder = mkdtempSync(join(tmpdir(), 'otpd-guide-'))
  const id = crypto.randomUUID().slice(0, 8)
  const names = { database: `otpd_${id}`, owner: `otpd_owner_${id}`, node: `otpd_node_${id}` }
  const ports = await Promise.all(Array.from({ length: 5 }, findUnusedPort))
  const [balancer = 0, , , , pooler = 0] = ports
  const { host, hostname, port: postgresPort } = new URL(serverUrl)
  const substitutes: Array<[RegExp | string, string]> = [
    ['@db.example.com/otpd?sslmode=verify-full', `@${host}/${names.database}?sslmode=disable`],
    [
      'host=db.example.com port=5432 dbname=otpd',
      `host=${hostname} port=${postgresPort || 5432} dbname=${names.database} user=${names.node}`,
    ],
    [/\botpd_owner\b/g, names.owner],
    [/\botpd_node\b/g, names.node],
    [/\bdatabase otpd\b/g, `database ${names.database}`],
    [/^otpd = /gm, `${names.database} = `],
    [/(\/etc|\/var\/lib)\/(otpd|haproxy|pgbouncer)\b/g, `${folder}$1/$2`],
    [/https:\/\/otp\.example\.com\b(?!\.)/g, `http://127.0.0.1:${balancer}`],
    ['10.0.0.10', '127.0.0.1'],
    [/bind :443 ssl crt \S+/g, `bind 127.0.0.1:${balancer}`],
    // The pair for which `faults` has a family, and faster here.
    ['check inter 1s', 'check inter 100'],
    ['OTPD_DRAIN_SECONDS=3', 'OTPD_DRAIN_SECONDS=1'],
    ['listen_port = 6432', `listen_port = ${pooler}`],
    // The server of the tests trusts every login.
    ['auth_type = scram-sha-256', 'auth_type = any'],
    [/^auth_file = .*\n/gm, ''],
  ]

  /** Finds the one block with that text, with its names replaced. */
  function block(language: string, text: string): string {
    const found = blocks.filter((one) => one.language === language && one.text.includes(text))
    const [only] = found
    if (!only || found.length > 1) throw new Error(`${found.length} blocks of ${language} have ${text}`)
    used.add(only.text)
    return substitutes
      .reduce((result, [from, to]) => result.replaceAll(from, to), only.text)
      .replaceAll(/10\.0\.0\.1([1-3]):8080/g, (_, node) => `127.0.0.1:${ports[Number(node)]}`)
  }

  async function withClient<T>(
    change: { database?: string; user?: string },
    run: (client: Client) => Promise<T>,
  ) {
    const url = new URL(serverUrl)
    if (change.database !== undefined) url.pathname = change.database
    if (change.user !== undefined) url.username = change.user
    const client = new Client(url.href)
    await client.connect()
    try {
      return await run(client)
    } finally {
      await client.end()
    }
  }

  for (const path of ['bin', 'etc/otpd', 'etc/haproxy', 'etc/pgbouncer', 'var/lib/otpd'])
    mkdirSync(join(folder, path), { recursive: true })
  symlinkSync(binaryPath, join(folder, 'bin/otpd'))
  // The test starts and stops nodes itself.
  // There is no user `otpd`: all runs as the user of the test.
  for (const name of ['systemctl', 'chown']) {
    writeFileSync(join(folder, 'bin', name), '#!/bin/sh\n')
    chmodSync(join(folder, 'bin', name), 0o755)
  }

  return {
    folder,
    names,
    balancerUrl: `http://127.0.0.1:${balancer}`,
    poolerPort: pooler,
    block,
    /** Blocks that were not asked for. */
    unused: () => blocks.map(({ text }) => text).filter((text) => !used.has(text)),

    /** Runs the statements of a block, in the database and with the role that its first line names. */
    async sql(text: string): Promise<void> {
      const statements = block('sql', text)
      const [, database = '', , role] = /^-- database: (\w+)(, role: (\w+))?/.exec(statements) ?? []
      const where = { database: database === 'otpd' ? names.database : database, ...(role && { user: role }) }
      await withClient(where, async (client) => {
        for (const statement of statements.split(';')) await client.query(statement)
      })
    },

    /** Runs a query in the database of the guide. @param user default the superuser */
    query: async (text: string, user?: string): Promise<unknown[]> =>
      withClient(
        { database: names.database, ...(user !== undefined && { user }) },
        async (client) => (await client.query(text)).rows,
      ),

    /** Runs a block of commands in a shell. @returns its output @throws Error it fails */
    async shell(text: string, env: Record<string, string> = {}): Promise<string> {
      const commands = block('sh', text)
      const { stdout, stderr, exitCode } = await runToEnd(
        ['sh', '-ec', commands.includes('otpd doctor') ? doctor + commands : commands],
        {
          cwd: folder,
          env: {
            HOME: folder,
            PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}`,
            ...testSettings,
            OTPD_PUBLIC_URL: `http://127.0.0.1:${balancer}`,
            ...env,
          },
        },
      )
      if (exitCode !== 0) throw new Error(`exit ${exitCode}:\n${commands}\n${stdout}${stderr}`)
      return stdout + stderr
    },

    /** Writes the file that the first line of a block names. @returns its path */
    writeFile(language: string, text: string): string {
      const content = block(language, text)
      const path = /^# (\S+)/.exec(content)?.[1] ?? ''
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content)
      return path
    },

    /** Environment of a node: the block, with the two lines of its own. */
    nodeEnvironment(node: 1 | 2 | 3): Record<string, string> {
      const lines = block('sh', 'OTPD_DATABASE_URL_FILE=/etc/otpd/database-url\n').split('\n')
      const entries = lines.filter((line) => line.startsWith('OTPD_')).map((line) => line.split(/=(.*)/s, 2))
      return {
        ...Object.fromEntries(entries),
        OTPD_NODE: `otp-${node}`,
        OTPD_LISTEN: `127.0.0.1:${ports[node]}`,
        ...testSettings,
      }
    },

    /** Starts a node as the unit does. */
    startNode(env: Record<string, string>) {
      const unit = readFileSync(join(root, '.packaging/linux/otpd.service'), 'utf8')
      const [, args = ''] = /^ExecStart=\/usr\/local\/bin\/otpd serve(.*)$/m.exec(unit) ?? []
      return startServer({ dataDir: null, env, args: args.trim().split(' ') })
    },

    async dispose(): Promise<void> {
      await withClient({}, async (client) => {
        await client.query(`drop database if exists ${names.database} with (force)`)
        for (const role of [names.owner, names.node]) await client.query(`drop role if exists ${role}`)
      })
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Programs that the guide needs and this machine lacks. */
export const missingPrograms = ['haproxy', 'pgbouncer', 'pg_dump', 'pg_restore', 'curl'].filter(
  (name) => findProgram(name) === null,
)
