import type { DatabaseConfig } from '../config/config.ts'
import { withPostgres } from '../store/postgres/connect.ts'
import { runOnPostgres } from '../store/engine/sql-steps.ts'
import { listLiveNodes } from '../store/postgres/nodes.ts'
import { withSnapshot } from '../store/postgres/snapshot.ts'
import type { RunningNode, ServerRecord } from './server-record.ts'

/** Reads what a node wrote about itself. It wrote its configuration before it was ready, and the rest afterwards. */
export const readRecord = (settings: string): Pick<ServerRecord, 'config'> & Partial<ServerRecord> =>
  JSON.parse(settings)

/**
 * Finds a node that serves a shared database: the one of this machine, otherwise the first by name.
 *
 * @param version version of this program; nodes of another one may write another form, and are not read
 * @returns null if none runs
 * @throws StartRefused the database cannot be read
 */
export async function findRunningNode(
  { url }: DatabaseConfig,
  ownName: string,
  version: string,
): Promise<(RunningNode & { record: ServerRecord }) | null> {
  const live = await withPostgres(url, async (client) => {
    // A database that is not migrated yet, as of a new installation, has no nodes.
    const { rows } = await client.query<{ name: string | null }>(`select to_regclass('nodes')::text as name`)
    if (!rows[0]?.name) return []
    return withSnapshot(client, () => runOnPostgres(client, listLiveNodes()))
  })
  const nodes = live.filter((node) => node.version === version)
  const found = nodes.find(({ name }) => name === ownName) ?? nodes[0]
  if (!found) return null
  const record = readRecord(found.settings)
  if (!isComplete(record)) return null
  return {
    name: found.name,
    record,
    others: nodes
      .filter((node) => node !== found)
      .map(({ name, configuration }) => ({
        name,
        hasSameConfiguration: configuration === found.configuration,
      })),
  }
}

/** Whether the node is ready: it writes its settings last. */
const isComplete = (record: Partial<ServerRecord>): record is ServerRecord => record.settings !== undefined
