import { and, eq, lt } from 'drizzle-orm'
import type { Database } from '../engine/database.ts'
import { onTable } from '../engine/on-table.ts'
import { query } from '../engine/sql-steps.ts'
import { postgresColumns as c } from './database.ts'

/** Nodes that serve the database, or have done so. SQLite has one, and no table of them. */
const nodes = c.table('nodes', {
  name: c.text('name').primaryKey(),
  /** Tells two processes of one name apart. */
  process: c.text('process').notNull(),
  version: c.text('version').notNull(),
  /** Keyed hash of the settings that all nodes should share. */
  configuration: c.text('configuration').notNull(),
  /** Record of the server, as JSON without secrets. */
  settings: c.text('settings').notNull(),
  startedAt: c.timestampMs('started_at').notNull(),
  seenAt: c.timestampMs('seen_at').notNull(),
})

export type NodeRow = typeof nodes.$inferSelect

/** How often a node renews its row, in milliseconds. */
export const nodeRenewMs = 10_000
/** A node that was not seen for so long is down, in milliseconds. */
export const nodeGoneMs = 35_000
/** A row that was not renewed for so long is deleted: a day, so that the doctor still names a node that went down. */
const nodeForgottenMs = 86_400_000

/** Writes the row of a starting node, over that of a process that had the name before, and deletes forgotten ones. */
export const registerNode = (database: Database, row: NodeRow): Promise<void> =>
  database.write(async (tx) => {
    const { name: _, ...fields } = row
    const rows = onTable(tx, nodes)
    await rows.delete(lt(nodes.seenAt, row.seenAt - nodeForgottenMs))
    await rows.put(row, { target: nodes.name, set: fields })
  })

/**
 * Renews the row of a node.
 *
 * @returns false if another process has the name now, whose row stays as it is
 */
export const renewNode = (
  database: Database,
  { name, process, ...fields }: Pick<NodeRow, 'name' | 'process' | 'seenAt'> & Partial<NodeRow>,
): Promise<boolean> =>
  database.write((tx) => onTable(tx, nodes).updateOne(fields, isProcess({ name, process })))

/** Deletes the row of a node that stops. */
export const removeNode = (database: Database, node: Pick<NodeRow, 'name' | 'process'>): Promise<void> =>
  database.write((tx) => onTable(tx, nodes).delete(isProcess(node)))

const isProcess = ({ name, process }: Pick<NodeRow, 'name' | 'process'>) =>
  and(eq(nodes.name, name), eq(nodes.process, process))

/** Lists all nodes by name. */
export const listNodes = (database: Database): Promise<NodeRow[]> =>
  onTable(database.read, nodes).list(undefined, nodes.name)

/** A node that runs now. */
export type LiveNode = Pick<NodeRow, 'name' | 'version' | 'configuration' | 'settings'>

/** Lists the nodes that run now, by name. The time of the server counts: a command may run on another machine. */
export const listLiveNodes = () =>
  query<LiveNode>(
    `select name, version, configuration, settings from nodes
     where seen_at > (extract(epoch from clock_timestamp()) * 1000)::bigint - ? order by name`,
    nodeGoneMs,
  )
