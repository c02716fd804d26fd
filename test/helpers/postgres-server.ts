import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { findUnusedPort } from './unused-port.ts'
import { findProgram } from './external-program.ts'

/** Folder with PostgreSQL's server programs, which Debian keeps outside of PATH; null if they are missing. */
export const postgresPrograms = findPostgresPrograms()

function findPostgresPrograms(): string | null {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : []
  const folders = versions.map((version) => join(debian, version, 'bin'))
  const inPath = findProgram('initdb')
  if (inPath !== null) folders.push(join(inPath, '..'))
  const programs = ['initdb', 'postgres', 'pg_basebackup']
  return folders.find((folder) => programs.every((name) => existsSync(join(folder, name)))) ?? null
}

export type PostgresServer = ReturnType<typeof describeServer>

type PostgresSettings = Record<string, string | number>

const startMsMax = 60_000

/**
 * Starts a PostgreSQL server of its own on loopback, with an empty database `otpd` of a role `otpd`. `dispose` removes it.
 *
 * @param options.tablespace folder for the tables, which the user of the server may write
 * @param options.env added to the variables of this process
 */
export async function startPostgresServer(
  settings: PostgresSettings = {},
  options: { tablespace?: string; env?: Record<string, string> } = {},
): Promise<PostgresServer> {
  const folder = createServerFolder()
  runAsServer(
    'initdb',
    '-D',
    join(folder, 'data'),
    '--username=postgres',
    '--auth=trust',
    '--encoding=UTF8',
    '--no-locale',
    '--no-sync',
  )
  const server = describeServer(folder, await findUnusedPort(), settings, options.env)
  await server.start()
  const { tablespace } = options
  await server.query('create role otpd login', 'postgres')
  if (tablespace !== undefined)
    await server.query(`create tablespace small location '${tablespace}'`, 'postgres')
  await server.query(
    `create database otpd owner otpd${tablespace === undefined ? '' : ' tablespace small'}`,
    'postgres',
  )
  return server
}

/** Starts a server that replicates another one. It takes no writes until it is promoted. */
export async function startStandby(
  primary: PostgresServer,
  name: string,
  port: number,
): Promise<PostgresServer> {
  const folder = createServerFolder()
  const source = `host=127.0.0.1 port=${primary.port} user=postgres application_name=${name}`
  const options = ['-R', '-X', 'stream', '--checkpoint=fast', '--no-sync']
  runAsServer('pg_basebackup', '-D', join(folder, 'data'), '-d', source, ...options)
  const standby = describeServer(folder, port, primary.settings)
  await standby.start()
  return standby
}

function createServerFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-postgres-'))
  const { uid, gid } = serverUser()
  if (process.getuid?.() === 0) chownSync(folder, uid, gid)
  return folder
}

/** PostgreSQL refuses to run as root. @returns Debian's user for it, or this process's */
export function serverUser(): { uid: number; gid: number } {
  if (process.getuid?.() !== 0) return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
  const [, , uid, gid] = /^postgres:.*$/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[0].split(':') ?? []
  if (uid === undefined || gid === undefined) throw new Error('there is no user postgres')
  return { uid: Number(uid), gid: Number(gid) }
}

/** Builds a command that runs as the user of the server, and ends with this process if `setpriv` is there. */
function asServer(program: string, ...args: string[]): string[] {
  const command = [join(postgresPrograms ?? '', program), ...args]
  const setpriv = findProgram('setpriv')
  if (setpriv === null) return command
  const { uid, gid } = serverUser()
  const user = process.getuid?.() === 0 ? [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] : []
  return [setpriv, ...user, '--pdeathsig', 'KILL', '--', ...command]
}

function runAsServer(program: string, ...args: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(asServer(program, ...args), { cwd: '/', stdout: 'ignore' })
  if (exitCode !== 0) throw new Error(`${program}: ${stderr.toString()}`)
}

function describeServer(
  folder: string,
  port: number,
  settings: PostgresSettings,
  env: Record<string, string> = {},
) {
  const url = `postgres://otpd@127.0.0.1:${port}/otpd`
  const adminUrl = `postgres://postgres@127.0.0.1:${port}/otpd`
  const dataDir = join(folder, 'data')
  let child: Bun.Subprocess | undefined

  /** Runs statements as the superuser, on a connection of their own. */
  async function query<R extends object>(sql: string, database = 'otpd', values?: unknown[]): Promise<R[]> {
    const client = new Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/${database}` })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query<R>(sql, values)).rows
    } finally {
      await client.end().catch(() => {})
    }
  }

  const isUp = () =>
    query('select 1', 'postgres').then(
      () => true,
      () => false,
    )

  return {
    /** URL of the database for its role. */
    url,
    /** URL of the database for the superuser. */
    adminUrl,
    port,
    folder,
    settings,
    query,
    /** Starts it, and waits until it takes connections. */
    async start() {
      const all = { listen_addresses: '127.0.0.1', port, unix_socket_directories: folder, ...settings }
      const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
      const started = Bun.spawn(asServer('postgres', '-D', dataDir, ...options), {
        cwd: '/',
        env: { ...process.env, ...env },
        stdin: 'ignore',
        stdout: 'ignore',
        stderr: Bun.file(join(folder, 'log')),
      })
      child = started
      const deadline = performance.now() + startMsMax
      while (!(await isUp())) {
        if (started.exitCode !== null || performance.now() > deadline)
          throw new Error(`PostgreSQL did not start: ${readFileSync(join(folder, 'log'), 'utf8')}`)
        await Bun.sleep(20)
      }
    },
    /** `immediate` aborts it as a crash would: the next start recovers. */
    async stop(mode: 'fast' | 'immediate' = 'immediate') {
      child?.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
      await child?.exited
    },
    async dispose() {
      child?.kill('SIGQUIT')
      await child?.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
