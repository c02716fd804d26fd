import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { startIssuer } from '../issuer.ts'
import { encodeRequest } from '../load.ts'
import { startServer, type Server } from '../machine.ts'
import { call, createApplications, readInbox, startOtpdNode, type Application } from '../otpd.ts'
import { phoneAt } from '../service.ts'

/** A PostgreSQL server on this machine. */
export type PostgresServer = {
  port: number
  /** Process id of its first process, whose children are all others. */
  pid: number
  /** Version, and settings that decide the cost of a commit. */
  description: string
  /** Creates an empty database. @returns its URL, and a function that drops it */
  createDatabase(): Promise<{ url: string; drop(): Promise<void> }>
  close(): Promise<void>
}

/** Connects to a server on this machine. @throws Error its processes are not those of this machine */
export async function openPostgresServer(serverUrl: string): Promise<PostgresServer> {
  const admin = new Client(serverUrl)
  await admin.connect()
  const { rows } = await admin.query<{ backend: number; description: string }>(
    `select pg_backend_pid() as backend, format('PostgreSQL %s, fsync=%s, shared_buffers=%s',
     current_setting('server_version'), current_setting('fsync'), current_setting('shared_buffers')) as description`,
  )
  const [facts] = rows
  const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${facts?.backend}/status`, 'utf8'))?.[1]
  return {
    port: Number(new URL(serverUrl).port || 5432),
    pid: Number(parent),
    description: facts?.description ?? '',
    async createDatabase() {
      const name = `otpd_bench_${crypto.randomUUID().replaceAll('-', '')}`
      await admin.query(`create database ${name}`)
      const url = new URL(serverUrl)
      url.pathname = name
      return {
        url: url.href,
        drop: async () => void (await admin.query(`drop database ${name} with (force)`)),
      }
    },
    close: () => admin.end(),
  }
}

/** Returns the user and system time of a process and all its children, also of those that ended, in seconds. */
export function familyCpuSeconds(pid: number): number {
  let ticks = 0
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    let stat: string
    try {
      stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
    } catch {
      // It has ended meanwhile.
      continue
    }
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [, parent, user = 0, system = 0, endedUser = 0, endedSystem = 0] = [0, 1, 11, 12, 13, 14].map(
      (index) => fields[index],
    )
    if (Number(entry) === pid) ticks += user + system + endedUser + endedSystem
    else if (parent === pid) ticks += user + system
  }
  return ticks / 100
}

/** Nodes that share a database, and the load for them. */
export type Cluster = {
  servers: readonly Server[]
  /** @param applications which of them send, in turn */
  encodeSends(count: number, applications: readonly Application[]): Uint8Array[]
  /** Encodes a verification of each of the newest codes, which are not verified. */
  encodeVerifies(count: number): Promise<Uint8Array[]>
  applications: readonly Application[]
}

/** Applications that send together; each of those that follow is measured alone. */
export const applicationsTogether = 64

type ClusterNeeds = {
  binary: string
  folder: string
  databaseUrl: string
  nodes: number
  aloneApplications?: number
}

/** Starts nodes on a new database, and creates applications of one developer. */
export async function startCluster(needs: ClusterNeeds): Promise<Cluster> {
  const { binary, folder, databaseUrl, nodes, aloneApplications = 0 } = needs
  const issuer = await startIssuer()
  const env = {
    OTPD_DATABASE_URL: databaseUrl,
    OTPD_DATABASE_UNSAFE: '1',
    OTPD_MASTER_KEY: '0123456789abcdef'.repeat(4),
    OTPD_PUBLIC_URL: 'http://127.0.0.1:9',
    ...issuer.env,
  }
  const servers: Server[] = []
  for (let index = 0; index < nodes; index++) {
    const home = join(folder, `node-${index}`)
    mkdirSync(home)
    const own = { ...env, OTPD_NODE: `node-${index}` }
    servers.push(await startOtpdNode({ command: [binary], folder: home, env: own }))
  }
  const url = `http://127.0.0.1:${servers[0]?.port}`
  const headers = { authorization: `Bearer ${await issuer.signToken('developer')}` }
  const applications = await createApplications(url, headers, applicationsTogether + aloneApplications)
  const byId = new Map(applications.map(({ id, credentials }) => [id, credentials]))
  let phones = 0

  return {
    servers,
    applications,
    encodeSends: (count, senders) =>
      Array.from({ length: count }, (_, index) =>
        encodeRequest('/v1/otp/send', senders[index % senders.length]?.credentials ?? {}, {
          phone: phoneAt(phones++),
        }),
      ),
    async encodeVerifies(count) {
      const items = await readInbox(url, headers, count)
      return items.flatMap(({ requestId, appId, code }) =>
        code === null ? [] : [encodeRequest('/v1/otp/verify', byId.get(appId) ?? {}, { requestId, code })],
      )
    },
  }
}

/** Starts the server of bare rows, as the limit of the nodes. */
export async function startBareRows(databaseUrl: string) {
  const script = join(import.meta.dir, '../servers/bare-rows.ts')
  const server = await startServer([process.execPath, script], {
    env: { DATABASE_URL: databaseUrl },
    core: null,
  })
  let phones = 0
  return {
    server,
    encodeSends: (count: number) =>
      Array.from({ length: count }, () => encodeRequest('/v1/otp/send', {}, { phone: phoneAt(phones++) })),
    async encodeVerifies() {
      const ids = await call<string[]>(`http://127.0.0.1:${server.port}/sent`)
      return ids.map((requestId) => encodeRequest('/v1/otp/verify', {}, { requestId, code: '000000' }))
    },
  }
}
