import { runLoad, type Load } from '../load.ts'
import { cpuSeconds, machineCpuSeconds, type Server } from '../machine.ts'
import { familyCpuSeconds, type PostgresServer } from './cluster.ts'
import type { DelayProxy, Traffic } from './delay-proxy.ts'

/** Figures of one measurement; costs are per call. */
export type NodeSample = Load &
  Traffic & {
    /** CPU time of all nodes. */
    nodeMicros: number
    /** CPU time of all processes of PostgreSQL. */
    databaseMicros: number
    /** Cores used by other processes than nodes, database and load. */
    otherCores: number
  }

export type Measured = { servers: readonly Server[]; postgres: PostgresServer; proxy: DelayProxy }

/** Runs load on all nodes, and measures what it costs there and in the database. */
export async function measureNodes(
  { servers, postgres, proxy }: Measured,
  requests: readonly Uint8Array[],
  options: { connections: number; seconds: number },
): Promise<NodeSample> {
  const read = () => ({
    at: performance.now() / 1000,
    nodes: servers.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0),
    database: familyCpuSeconds(postgres.pid),
    load: cpuSeconds(process.pid),
    machine: machineCpuSeconds(),
    traffic: proxy.traffic(),
  })
  const before = read()
  const load = await runLoad(
    servers.map(({ port }) => port),
    requests,
    options,
  )
  const after = read()
  const nodes = after.nodes - before.nodes
  const database = after.database - before.database
  const others = after.machine - before.machine - nodes - database - (after.load - before.load)
  const perCall = (name: keyof Traffic) => (after.traffic[name] - before.traffic[name]) / load.responses
  return {
    ...load,
    nodeMicros: (nodes / load.responses) * 1e6,
    databaseMicros: (database / load.responses) * 1e6,
    roundTrips: perCall('roundTrips'),
    statements: perCall('statements'),
    transactions: perCall('transactions'),
    otherCores: Math.max(0, others) / (after.at - before.at),
  }
}
