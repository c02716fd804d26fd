import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from './external-program.ts'
import { findUnusedPort } from './unused-port.ts'

const program = findProgram('haproxy')
export const hasHaproxy = program !== null

export type Haproxy = Awaited<ReturnType<typeof startHaproxy>>

/**
 * Starts HAProxy in front of nodes. It gives each call to the next one, and asks each for its readiness four times a
 * second. The response header `x-node` has the number of the node.
 */
export async function startHaproxy(ports: readonly number[]) {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-haproxy-'))
  const port = await findUnusedPort()
  const servers = ports.map(
    (nodePort, i) => `  server ${i} 127.0.0.1:${nodePort} check inter 250 fall 2 rise 1`,
  )
  const config = [
    'global\n  maxconn 2000',
    'defaults\n  mode http\n  timeout connect 1s\n  timeout client 60s\n  timeout server 60s\n  timeout queue 5s',
    `frontend calls\n  bind 127.0.0.1:${port}\n  default_backend nodes`,
    'backend nodes\n  balance roundrobin\n  option httpchk GET /v1/health/ready\n  option redispatch 1',
    '  http-response set-header x-node %s',
    ...servers,
    '',
  ]
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, config.join('\n'))
  const setpriv = findProgram('setpriv')
  const child = Bun.spawn(
    [...(setpriv === null ? [] : [setpriv, '--pdeathsig', 'KILL', '--']), program ?? '', '-db', '-f', file],
    { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' },
  )
  const url = `http://127.0.0.1:${port}`
  while ((await fetch(url).catch(() => undefined)) === undefined) {
    if (child.exitCode !== null) throw new Error(`haproxy ended with ${child.exitCode}`)
    await Bun.sleep(20)
  }
  return {
    url,
    async stop() {
      child.kill('SIGKILL')
      await child.exited
      rmSync(folder, { recursive: true })
    },
  }
}
