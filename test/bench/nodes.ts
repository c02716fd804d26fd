import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { cacheFolder, type Server } from './machine.ts'
import { applicationsTogether, openPostgresServer, startBareRows, startCluster } from './nodes/cluster.ts'
import { delayProxyLack, startDelayProxy, type DelayProxy } from './nodes/delay-proxy.ts'
import { measureNodes, type Measured } from './nodes/measure.ts'
import { nodesGoalsTable, nodesTable, type Kind, type Result, type Row } from './nodes/table.ts'
import { median } from './stats.ts'

// `npm run bench:nodes [-- OPTIONS]`: measures nodes on PostgreSQL, at several distances from it, next to bare rows in
// the same tables.

const usage = `npm run bench:nodes -- [options]

  --postgres URL    server on this machine, default OTPD_TEST_POSTGRES_URL
  --nodes N,...     default 1,2,3
  --delays MS,...   added to each round trip to the database, default 0,1,5
  --connections N   of the load to all nodes together, default 48
  --rounds N        default 3
  --seconds N       of load for each row in each round, default 2
  --quick           one round of 1 s
  --binary FILE     what is measured, default dist/otpd
`

const { values } = parseArgs({
  options: {
    postgres: { type: 'string', default: process.env['OTPD_TEST_POSTGRES_URL'] ?? '' },
    nodes: { type: 'string', default: '1,2,3' },
    delays: { type: 'string', default: '0,1,5' },
    connections: { type: 'string', default: '48' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    binary: { type: 'string', default: resolve(import.meta.dir, '../../dist/otpd') },
    help: { type: 'boolean', default: false },
  },
})
const print = (text: string) => process.stdout.write(`${text}\n`)
const logProgress = (text: string) => process.stderr.write(`${text}\n`)
if (values.help) {
  print(usage)
  process.exit(0)
}
const lack = delayProxyLack ?? (values.postgres === '' ? 'no PostgreSQL server is named' : undefined)
if (lack !== undefined) {
  logProgress(`Nothing was measured: ${lack}.\n\n${usage}`)
  process.exit(2)
}
const numbers = (text: string) => text.split(',').map(Number)
const nodeCounts = numbers(values.nodes)
const delays = numbers(values.delays)
const connections = Number(values.connections)
const roundCount = Number(values.rounds ?? (values.quick ? 1 : 3))
const seconds = Number(values.seconds ?? (values.quick ? 1 : 2))
/** Until the code of the nodes is compiled; on a busy machine, as far as it comes in that time. */
const warmUp = { count: 15_000, time: 20 }
const sendsPerSecondMax = 20_000
/** Sends of an application in a minute, which its plan allows. */
const sendsAloneMax = 9_900

/** Bare rows or nodes, with the calls that they take. */
type Target = Measured & {
  encodeSends(count: number): Uint8Array[]
  encodeVerifies(count: number): Promise<Uint8Array[]>
}

async function measureFlow(
  target: Target,
  row: Omit<Row, 'kind'>,
  { count = seconds * sendsPerSecondMax, time = seconds } = {},
): Promise<Result[]> {
  const load = { connections: row.load === 'caller' ? 1 : connections, seconds: time }
  const label = `${row.load}, ${row.nodes} nodes, +${row.delayMs} ms`
  const send = await measureNodes(target, target.encodeSends(count), load)
  logProgress(`${label}: send ${send.requestsPerSecond.toFixed(0)}/s`)
  const verify = await measureNodes(target, await target.encodeVerifies(send.responses), load)
  logProgress(`${label}: verify ${verify.requestsPerSecond.toFixed(0)}/s`)
  const add = (kind: Kind, sample: typeof send): Result => ({ ...row, kind, ...sample })
  return [add('send', send), add('verify', verify)]
}

/** Runs a body on a new database, through a new proxy. */
async function withDatabase<T>(
  folder: string,
  run: (proxied: { url: string; proxy: DelayProxy }) => Promise<T>,
): Promise<T> {
  mkdirSync(folder)
  const database = await postgres.createDatabase()
  const proxy = await startDelayProxy(folder, postgres.port)
  try {
    const url = new URL(database.url)
    url.port = String(proxy.port)
    return await run({ url: url.href, proxy })
  } finally {
    await proxy.stop()
    await database.drop()
  }
}

const stopAll = (servers: readonly Server[]) => Promise.all(servers.map((server) => server.stop()))

const measureBare = (folder: string): Promise<Result[]> =>
  withDatabase(folder, async ({ url, proxy }) => {
    // By a node, which also makes the partitions of the month.
    const migrating = await startCluster({ binary: values.binary, folder, databaseUrl: url, nodes: 1 })
    await stopAll(migrating.servers)
    const bare = await startBareRows(url)
    const target: Target = { ...bare, servers: [bare.server], postgres, proxy }
    const results: Result[] = []
    try {
      const row = { load: 'bare', nodes: 0 } as const
      await measureFlow(target, { ...row, delayMs: 0 }, warmUp)
      for (const delayMs of delays) {
        proxy.setDelay(delayMs)
        results.push(...(await measureFlow(target, { ...row, delayMs })))
      }
      return results
    } finally {
      await bare.server.stop()
    }
  })

const measureCluster = (folder: string, nodes: number): Promise<Result[]> =>
  withDatabase(folder, async ({ url, proxy }) => {
    const needs = { binary: values.binary, folder, databaseUrl: url, nodes }
    const cluster = await startCluster({ ...needs, aloneApplications: delays.length })
    const together = cluster.applications.slice(0, applicationsTogether)
    const common = { servers: cluster.servers, postgres, proxy, encodeVerifies: cluster.encodeVerifies }
    const many: Target = { ...common, encodeSends: (count) => cluster.encodeSends(count, together) }
    const results: Result[] = []
    try {
      await measureFlow(many, { load: 'many', nodes, delayMs: 0 }, warmUp)
      for (const [index, delayMs] of delays.entries()) {
        proxy.setDelay(delayMs)
        const alone = cluster.applications.slice(
          applicationsTogether + index,
          applicationsTogether + index + 1,
        )
        const one: Target = { ...common, encodeSends: (count) => cluster.encodeSends(count, alone) }
        results.push(...(await measureFlow(many, { load: 'many', nodes, delayMs })))
        results.push(...(await measureFlow(one, { load: 'one', nodes, delayMs }, { count: sendsAloneMax })))
        if (nodes === 1)
          results.push(
            ...(await measureFlow(many, { load: 'caller', nodes, delayMs }, { count: 1_000, time: 1 })),
          )
      }
      return results
    } finally {
      await stopAll(cluster.servers)
    }
  })

mkdirSync(cacheFolder, { recursive: true })
const root = mkdtempSync(join(cacheFolder, 'bench-'))
process.on('exit', () => rmSync(root, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))

const postgres = await openPostgresServer(values.postgres)
const rounds: Result[][] = []
for (let round = 1; round <= roundCount; round++) {
  logProgress(`round ${round} of ${roundCount}`)
  const results = await measureBare(join(root, `${round}-bare`))
  for (const nodes of nodeCounts)
    results.push(...(await measureCluster(join(root, `${round}-${nodes}`), nodes)))
  rounds.push(results)
}
await postgres.close()

const all = rounds.flat()
const cores = navigator.hardwareConcurrency
print(`${postgres.description}. Medians of ${roundCount} rounds of ${seconds} s, ${connections} connections;`)
print(`nodes, database and load share ${cores} cores.\n`)
const otherCores = median(all.map((result) => result.otherCores))
if (otherCores > 0.2)
  print(`Other programs used ${otherCores.toFixed(1)} cores meanwhile: ratios mean less.\n`)
print(`${nodesTable(all)}\n`)
print(nodesGoalsTable(rounds))
