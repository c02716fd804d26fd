import { sql } from 'drizzle-orm'
import type { Database } from '../engine/database.ts'
import { movingKey, requireServable } from './migrate.ts'

/**
 * Requires that this version may go on serving a database that it began to serve.
 *
 * @throws MigrationError a newer version drops what this one uses, or a move into the database was begun
 */
export async function requireServableSchema({ read }: Database): Promise<void> {
  const [row] = await read
    .select({ nodesFrom: sql<number>`nodes_from`, isMoving: sql<boolean>`is_moving` })
    .from(
      sql`(select (select coalesce(max(nodes_from), 0) from migrations) as nodes_from,
        exists (select 1 from meta where name = ${movingKey}) as is_moving) as current`,
    )
  if (row) requireServable(row)
}
