import type { Migration } from '../engine/migration-files.ts'

/** How a migration of PostgreSQL gets along with nodes that serve while it runs. */
type MigrationScope = {
  /** Number of the newest migration that a node must know to go on serving; 0: every node goes on. */
  nodesFrom: number
  /** Builds an index while nodes write, outside a transaction. */
  isConcurrent: boolean
}

/** The last migration before nodes could be upgraded one after the other. */
const baseline = 18

/**
 * Reads the first line of a migration's file:
 *
 * - `-- expand`: nodes that do not know it go on serving.
 * - `-- expand concurrently`: as above, and its one statement is `create index concurrently`.
 * - `-- contract 0021`: nodes that do not know migration 0021, which replaced what this one drops, must drain first.
 *
 * A file that declares nothing counts as one that all nodes must know.
 */
export function migrationScope({ name, sql }: Migration): MigrationScope {
  const number = Number(name.slice(0, 4))
  if (number <= baseline) return { nodesFrom: 0, isConcurrent: false }
  const [, kind, argument] = /^-- (expand|contract)(?: (concurrently|\d{4}))?\n/.exec(sql) ?? []
  if (kind === 'expand') return { nodesFrom: 0, isConcurrent: argument === 'concurrently' }
  return { nodesFrom: Number(argument ?? number), isConcurrent: false }
}
