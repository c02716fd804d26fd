import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from './external-program.ts'
import { findUnusedPort } from './unused-port.ts'

const program = findProgram('haproxy')
export const hasHaproxy = program !== null

type CreateConfig = (port: number, nodePorts: readonly number[]) => string

/**
 * Gives each call to the next node, and asks each for its readiness four times a second. The response header `x-node` has
 * the number of the node.
 */
const roundRobin: CreateConfig = (port, nodePorts) => {
  const servers = nodePorts.map(
    (nodePort, i) => `  server ${i} 127.0.0.1:${nodePort} check inter 250 fall 2 rise 1`,
  )
  return [
    'global\n  maxconn 2000',
    'defaults\n  mode http\n  timeout connect 1s\n  timeout client 60s\n  timeout server 60s\n  timeout queue 5s',
    `frontend calls\n  bind 127.0.0.1:${port}\n  default_backend nodes`,
    'backend nodes\n  balance roundrobin\n  option httpchk GET /v1/health/ready\n  option redispatch 1',
    '  http-response set-header x-node %s',
    ...servers,
    '',
  ].join('\n')
}

const guide = readFileSync(join(import.meta.dir, '../../src/docs/many-nodes.md'), 'utf8')

/** The configuration of the guide on many nodes, without TLS. */
export const guideConfig: CreateConfig = (port, nodePorts) =>
  (/^```haproxy\n(.*?)^```$/ms.exec(guide)?.[1] ?? '')
    .replace(/bind :443 ssl crt \S+/, `bind 127.0.0.1:${port}`)
    .replaceAll(/10\.0\.0\.1([1-3]):8080/g, (_, node) => `127.0.0.1:${nodePorts[Number(node) - 1]}`)

/** How long nodes of the guide drain. */
export const guideDrain = { OTPD_DRAIN_SECONDS: /^OTPD_DRAIN_SECONDS=(\d+)$/m.exec(guide)?.[1] ?? '' }

/** Starts HAProxy in front of nodes. */
export async function startHaproxy(nodePorts: readonly number[], createConfig = roundRobin) {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-haproxy-'))
  const port = await findUnusedPort()
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, createConfig(port, nodePorts))
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
