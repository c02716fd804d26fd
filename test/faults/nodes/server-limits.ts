import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { serverUser, startPostgresServer, type PostgresServer } from '../../helpers/postgres-server.ts'
import { logIn, type TestApp } from '../../helpers/webhook-client.ts'
import { callApi, countStatuses, violationUnless, waitUntil } from '../calls.ts'
import type { Trial } from '../family.ts'
import { defineNodeFamily, startCluster, type Cluster } from './cluster.ts'
import { duringOf, isExpected, startNodeLoad } from './node-load.ts'

const callers = 4
const faultMs = 9_000
/** Time after which the fault must have reached every call. */
const settleMs = 2_500
const backMsMax = 1_000

/** Limit of the server that is reached, and lifted by `end`. */
type Limit = {
  name: string
  begin(): Promise<void>
  end(): Promise<void>
  /** Whether lists can be read meanwhile. */
  canRead: boolean
  /** Whether a part of the writes may succeed. */
  isPartial?: true
  /** Whether nodes are not ready meanwhile. */
  isUnready?: true
}

export const serverLimits = defineNodeFamily({
  name: 'nodes-limits',
  description: 'a database whose rows are locked, which is full, read-only, or takes no connection',
  counts: { 'node-limits': { full: 1, short: 0 } },
  async run(trial) {
    if (trial.count('node-limits') === 0) return
    const disk = mountSmallDisk()
    const postgres = await startPostgresServer({}, disk ? { tablespace: disk.folder } : {})
    try {
      const cluster = await startCluster(trial, { postgres })
      try {
        const client = await logIn(cluster.url)
        const app = await client.createApplication()
        for (let i = 0; i < trial.count('node-limits'); i++)
          for (const limit of limitsOf(postgres, disk))
            await tryLimit(trial, cluster, client.token, app, limit)
      } finally {
        await cluster.stop()
      }
    } finally {
      disk?.remove()
    }
  },
})

function limitsOf(postgres: PostgresServer, disk: SmallDisk | undefined): Limit[] {
  const locker = createLocker(postgres)
  const canceller = createCanceller(postgres)
  async function setReadOnly(value: 'on' | 'off') {
    await asAdmin(`alter system set default_transaction_read_only = ${value}`)
    await asAdmin('select pg_reload_conf()')
  }
  const asAdmin = (sql: string) => postgres.query(sql, 'postgres')
  const disconnect =
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'otpd/node-%'"
  return [
    { name: 'every writer waits for a lock', ...locker, canRead: true },
    { name: 'statements are ended by a time-out', ...canceller, canRead: false, isPartial: true },
    {
      name: 'the database is read-only',
      begin: () => setReadOnly('on'),
      end: () => setReadOnly('off'),
      canRead: true,
      isUnready: true,
    },
    {
      name: 'sessions begin while the database is read-only',
      async begin() {
        await asAdmin('alter role otpd set default_transaction_read_only = on')
        await asAdmin(disconnect)
      },
      end: async () => void (await asAdmin('alter role otpd reset default_transaction_read_only')),
      canRead: true,
      isUnready: true,
    },
    {
      name: 'the server takes no more connections',
      async begin() {
        await asAdmin('alter role otpd connection limit 0')
        await asAdmin(disconnect)
      },
      end: async () => void (await asAdmin('alter role otpd connection limit -1')),
      canRead: false,
      isUnready: true,
    },
    ...(disk
      ? [
          {
            name: 'the disk of the tables is full',
            begin: async () => disk.fill(),
            end: async () => disk.free(),
            canRead: true,
            // Rows still fit into pages that have room.
            isPartial: true as const,
            isUnready: true as const,
          },
        ]
      : []),
  ]
}

/** Keeps the counter of log entries locked. */
function createLocker(postgres: PostgresServer) {
  let client: Client | undefined
  return {
    async begin() {
      client = new Client({ connectionString: postgres.adminUrl })
      await client.connect()
      await client.query('begin; lock table counters in exclusive mode')
    },
    async end() {
      await client?.end()
    },
  }
}

/** Cancels every statement that runs, with the code of a statement time-out. */
function createCanceller(postgres: PostgresServer) {
  const controller = new AbortController()
  let ended = Promise.resolve()
  return {
    async begin() {
      const client = new Client({ connectionString: postgres.adminUrl })
      await client.connect()
      ended = (async () => {
        while (!controller.signal.aborted) {
          await client.query(
            "select pg_cancel_backend(pid) from pg_stat_activity where application_name like 'otpd/node-%' and state = 'active'",
          )
        }
        await client.end()
      })()
    },
    async end() {
      controller.abort()
      await ended
    },
  }
}

type SmallDisk = NonNullable<ReturnType<typeof mountSmallDisk>>

/** Mounts a disk of 48 MB for the tables; the log of the server is on another one. Undefined if this is not root. */
function mountSmallDisk() {
  if (process.getuid?.() !== 0) {
    process.stdout.write(' - skipped: only root can mount a small disk\n')
    return undefined
  }
  const folder = mkdtempSync(join(tmpdir(), 'otpd-tablespace-'))
  const { uid, gid } = serverUser()
  const options = `size=48m,mode=0700,uid=${uid},gid=${gid}`
  if (Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', options, 'none', folder]).exitCode !== 0)
    throw new Error('the small disk could not be mounted')
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill() {
      const { bavail, bsize } = statfsSync(folder)
      try {
        writeFileSync(ballast, Buffer.alloc(bavail * bsize))
      } catch {
        // The server has taken a part of it meanwhile: the disk is full.
      }
    },
    free: () => rmSync(ballast),
    remove() {
      Bun.spawnSync(['umount', '--lazy', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function tryLimit(trial: Trial, cluster: Cluster, token: string, app: TestApp, limit: Limit) {
  const { nodes } = cluster
  const load = startNodeLoad(nodes, { apps: [app], callers, token })
  await Bun.sleep(1_500)
  const linesBefore = nodes.map(({ log }) => countLines(log()))
  await limit.begin()
  const from = performance.now()
  await Bun.sleep(faultMs)
  const until = performance.now()
  const probes = await Promise.all(nodes.map(({ url }) => callApi('GET', `${url}/v1/health/ready`)))
  await limit.end()
  const endedAt = performance.now()
  const lines = nodes.map(({ log }, i) => countLines(log()) - (linesBefore[i] ?? 0))
  const isBack = () =>
    nodes.every((_, i) =>
      load.calls.some(
        ({ node, kind, status, startedAt, ms }) =>
          node === i && kind === 'send' && status === 201 && startedAt + ms > endedAt,
      ),
    )
  await waitUntil(trial.allowMs(backMsMax) + 5_000, isBack)
  const backMs = Math.round(performance.now() - endedAt)
  await load.stop()

  const during = duringOf(load.calls, from, until).filter(
    ({ startedAt, ms }) => startedAt > from + settleMs && startedAt + ms < until,
  )
  const writes = during.filter(({ kind }) => kind !== 'list')
  const lists = during.filter(({ kind }) => kind === 'list')
  const accepted = writes.filter(({ status }) => status < 300)
  const refused = load.calls.filter(({ status }) => status === 503)
  const withoutRetryAfter = refused.filter(({ headers }) => headers.get('retry-after') === null)
  const unexpected = load.calls.filter((call) => !isExpected(call))
  const unreadLists = lists.filter(({ status }) => status !== 200)
  const linesMax = Math.ceil(faultMs / 1_000) + 4
  trial.report({
    scenario: limit.name,
    guarantee: `writes are 503 with Retry-After, ${limit.canRead ? 'lists go on, ' : ''}one log line a second, back within ${trial.allowMs(backMsMax)} ms`,
    figures: {
      writes: countStatuses(writes),
      lists: countStatuses(lists),
      'readiness before the end': countStatuses(probes),
      'log lines a node': lines.join(', '),
      'back after ms': backMs,
    },
    violations: [
      ...violationUnless(refused.length > 0, 'the limit was not reached: nothing was refused'),
      ...violationUnless(limit.isPartial || accepted.length === 0, `${accepted.length} writes succeeded`),
      ...violationUnless(
        !limit.isUnready || probes.every(({ status }) => status === 503),
        `readiness was ${countStatuses(probes)}`,
      ),
      ...violationUnless(unexpected.length === 0, `unexpected answers: ${countStatuses(unexpected)}`),
      ...violationUnless(
        withoutRetryAfter.length === 0,
        `${withoutRetryAfter.length} times 503 without Retry-After`,
      ),
      ...violationUnless(
        !limit.canRead || (lists.length > 0 && unreadLists.length === 0),
        `lists were ${countStatuses(lists)}`,
      ),
      ...violationUnless(
        lines.every((count) => count <= linesMax),
        `${Math.max(...lines)} log lines of a node`,
      ),
      ...violationUnless(backMs <= trial.allowMs(backMsMax), `back after ${backMs} ms`),
    ],
  })
}

const countLines = (text: string) => text.split('\n').length
