import type { Config, DatabaseConfig } from '../config/config.ts'
import { sharedSettings } from '../config/shared-settings.ts'
import { readGuardStatus } from '../domain/guard/status.ts'
import type { OpenCircuit } from '../domain/model/delivery.ts'
import { verifyChains, type AuditVerification } from '../store/data-dir/audit-verification.ts'
import { OperationRefused, StartRefused } from '../store/data-dir/data-dir.ts'
import { withPostgres } from '../store/postgres/connect.ts'
import { listNodes, nodeGoneMs } from '../store/postgres/nodes.ts'
import { measureLatency, readServerFacts, type ServerFacts } from '../store/postgres/server-checks.ts'
import { countSends, listVerifiedCountries, type SendCounts } from '../store/engine/sending-facts.ts'
import { runOnPostgres } from '../store/engine/sql-steps.ts'
import { listMasterKeys } from '../store/data-dir/data-keys.ts'
import { withSnapshot } from '../store/postgres/snapshot.ts'
import { readRecord } from './running-node.ts'
import { openSharedStore } from './shared.ts'

/** A node as its row tells. */
export type InspectedNode = {
  name: string
  version: string
  /** Keyed hash: the same for nodes with the same settings. */
  configuration: string
  /** Settings that all nodes should share, without secrets. */
  settings: Record<string, unknown>
  startedAt: number
  seenAt: number
  /** It renewed its row lately. */
  isAlive: boolean
}

/** State of a shared database as this machine sees it. */
export type SharedInspection =
  | { state: 'unusable'; message: string; remedy: string }
  | {
      state: 'open'
      facts: ServerFacts
      /** Shortest time of a statement, in milliseconds. */
      latencyMs: number
      /** Master keys that open it: two while one replaces the other. */
      masterKeys: number
      nodes: InspectedNode[]
      openCircuits: OpenCircuit[]
      guardAlerts: Array<{ country: string; until: number }>
      /** Countries in which codes were verified, the one with most first. */
      verifiedCountries: string[]
      sendCounts: SendCounts
      auditTrail: AuditVerification
    }

/** Inspects a shared database without changing it, also while nodes serve it. Never throws an expected failure. */
export async function inspectShared(
  config: Config & { database: DatabaseConfig },
): Promise<SharedInspection> {
  try {
    return await inspectOpen(config)
  } catch (error) {
    if (error instanceof StartRefused || error instanceof OperationRefused)
      return { state: 'unusable', message: error.message, remedy: error.remedy }
    throw error
  }
}

async function inspectOpen(config: Config & { database: DatabaseConfig }): Promise<SharedInspection> {
  const { database, store, keys, clock, close } = await openSharedStore(config, 'read')
  try {
    const nodes = await listNodes(database)
    const { alerts } = await readGuardStatus(store, config.guard, clock.now())
    const openCircuits = await store.read.providerCircuits.list()
    const ofServer = await withPostgres(config.database.url, async (client) => ({
      facts: await readServerFacts(client),
      latencyMs: await measureLatency(client),
      ...(await withSnapshot(client, async () => ({
        masterKeys: (await runOnPostgres(client, listMasterKeys())).length,
        verifiedCountries: await runOnPostgres(client, listVerifiedCountries()),
        sendCounts: await runOnPostgres(client, countSends()),
      }))),
      auditTrail: await withSnapshot(client, () => runOnPostgres(client, verifyChains(keys))),
    }))
    return {
      state: 'open',
      ...ofServer,
      nodes: nodes.map(({ settings, ...node }) => ({
        ...node,
        settings: sharedSettings(readRecord(settings).config),
        isAlive: clock.now() - node.seenAt < nodeGoneMs,
      })),
      openCircuits,
      guardAlerts: alerts.map(({ country, until }) => ({ country, until: Date.parse(until) })),
    }
  } catch (error) {
    throw database.convertError(error)
  } finally {
    await close()
  }
}
