import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { collectOutput } from './binary.ts'
import { findUnusedPort } from './unused-port.ts'

const program = Bun.which('pgbouncer', { PATH: `${process.env.PATH ?? ''}:/usr/sbin` })
export const hasPgbouncer = program !== null
if (!hasPgbouncer)
  process.stderr.write('Skipped: tests through a connection pooler. Install pgbouncer to run them.\n')

/** Settings under which PgBouncer keeps prepared statements in transaction mode; undefined before 1.21, which cannot. */
const keepStatements = hasKeptStatements() ? 'max_prepared_statements = 200' : undefined

function hasKeptStatements(): boolean {
  if (program === null) return false
  const version = Bun.spawnSync([program, '--version']).stdout.toString()
  const [, major, minor] = /(\d+)\.(\d+)/.exec(version) ?? []
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 21)
}

/** Values of `OTPD_DATABASE_STATEMENTS` that work with PgBouncer in transaction mode. */
export const pooledStatements = keepStatements === undefined ? ['unnamed'] : ['unnamed', 'named']

/**
 * Starts PgBouncer in front of the database of a URL. `url` leads through it.
 *
 * @param ignored parameters of a new connection that it drops; it refuses all others
 */
export async function startPgbouncer(
  target: string,
  mode: 'session' | 'transaction' | 'statement',
  ignored = '',
) {
  const { hostname, port: targetPort, pathname, username, password } = new URL(target)
  const port = await findUnusedPort()
  const database = pathname.slice(1)
  const login = `user=${username}${password === '' ? '' : ` password=${password}`}`
  const config = [
    '[databases]',
    `${database} = host=${hostname} port=${targetPort || 5432} ${login}`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nauth_type = any`,
    `pool_mode = ${mode}\nmax_client_conn = 200\ndefault_pool_size = 20`,
    `ignore_startup_parameters = ${ignored}`,
    keepStatements ?? '',
    '',
  ]
  const { stop } = await runPgbouncer(config.join('\n'))
  const url = new URL(target)
  url.port = String(port)
  return { url: url.href, stop }
}

/** Starts PgBouncer with a configuration, which ends with its own section. */
export async function runPgbouncer(config: string) {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-pgbouncer-'))
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, `${config}\nunix_socket_dir =\n`)
  Bun.spawnSync(['chmod', '-R', 'a+rX', folder])
  // PgBouncer refuses to run as root.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = Bun.spawn([program ?? '', ...user, file], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const output = collectOutput(child.stderr)
  await Promise.race([output.waitFor('process up'), child.exited])
  if (child.exitCode !== null) throw new Error(`pgbouncer: ${output.text()}`)
  return {
    async stop() {
      child.kill('SIGKILL')
      await child.exited
      rmSync(folder, { recursive: true })
    },
  }
}
