import type { Database as SqliteConnection } from 'bun:sqlite'
import type { ClientBase } from 'pg'

/** A statement in SQL that both databases understand. Placeholders are `?`. */
type Statement = { sql: string; values: ReadonlyArray<string | number | null> }

/**
 * Work in steps: each yields a statement and receives its rows, so that it runs on the synchronous driver of SQLite and on
 * PostgreSQL's.
 */
export type SqlSteps<T> = Generator<Statement, T, unknown[]>

/** Runs a statement. The caller names the type of its rows, which the columns of the statement give. */
export function* query<Row>(sql: string, ...values: Statement['values']): SqlSteps<Row[]> {
  return (yield { sql, values }) as Row[]
}

export function runOnSqlite<T>(connection: SqliteConnection, steps: SqlSteps<T>): T {
  let step = steps.next()
  while (!step.done) {
    const { sql, values } = step.value
    step = steps.next(connection.query<unknown, (string | number | null)[]>(sql).all(...values))
  }
  return step.value
}

export async function runOnPostgres<T>(client: ClientBase, steps: SqlSteps<T>): Promise<T> {
  let step = steps.next()
  while (!step.done) {
    const { sql, values } = step.value
    let placeholder = 0
    const text = sql.replaceAll('?', () => `$${++placeholder}`)
    const { rows } = await client.query<Record<string, unknown>>(text, [...values])
    step = steps.next(rows)
  }
  return step.value
}
