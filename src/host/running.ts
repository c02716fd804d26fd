import type { Config } from '../config/config.ts'
import { isRecord } from '../shared/json.ts'
import { readServerRecord } from '../store/data-dir/server-record.ts'
import type { RunningNode, ServerRecord } from './server-record.ts'

/** The server that runs on a data directory, with the settings that it was started with. */
export type RunningServerView = Omit<ServerRecord, 'config'> & {
  /** Configuration of the server; the master key and the passwords are those of this process. */
  config: Config
  /** Null unless nodes share the database. */
  node: RunningNode | null
}

/**
 * Finds the server that runs on the data directory or the database of a configuration.
 *
 * @param version version of this program; a record of another version may have another form, and is not used
 * @returns null if none runs, or it says nothing that this user and version can read
 * @throws StartRefused the database that nodes share cannot be read
 */
export async function findRunningServer(config: Config, version: string): Promise<RunningServerView | null> {
  if (config.database !== null) {
    // The driver takes 5 MB of memory.
    const { findRunningNode } = await import('./running-node.ts')
    const found = await findRunningNode(config.database, config.node, version)
    return found && { ...toView(found.record, config), node: { name: found.name, others: found.others } }
  }
  if (config.dataDir === null) return null
  const record = readServerRecord(config.dataDir)
  if (!isRecord(record) || record.version !== version) return null
  // Written by this very version.
  return { ...toView(record as ServerRecord, config), node: null }
}

const toView = ({ config: running, ...view }: ServerRecord, { database, secrets }: Config) => ({
  ...view,
  config: { ...running, database, secrets },
})
