import type { QueryExecutor } from '../engine/database.ts'
import { driverCode } from '../engine/errors.ts'
import { toJsonRows, type RowWrite } from '../engine/row-writes.ts'

/** Runs a statement of SQL text, which is prepared, if it can be. */
type RunSql = (sql: string, values: readonly string[]) => Promise<unknown>

/**
 * State of one connection. Writes of rows are not awaited before the commit, so that the changes of a transaction cost one
 * round trip.
 */
export type PostgresSession = ReturnType<typeof createPostgresSession>

/** Sessions by the executor of their connection. */
const sessions = new WeakMap<object, PostgresSession>()

export const sessionOf = (executor: QueryExecutor): PostgresSession => {
  const session = sessions.get(executor)
  if (!session) throw new Error('rows can be written in a transaction only')
  return session
}

/** Creates the state of a connection. @param executor runs its other statements */
export function createPostgresSession(executor: QueryExecutor, runSql: RunSql) {
  let sent: Array<Promise<unknown>> = []

  /** Leaves a statement that was sent to `settle`. */
  function defer(statement: Promise<unknown>): void {
    // `settle` awaits it; it may fail before.
    statement.catch(() => {})
    sent.push(statement)
  }

  /** Waits for the deferred statements. @returns their errors, in their order */
  async function settleSent(): Promise<unknown[]> {
    const results = await Promise.allSettled(sent.splice(0))
    return results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  }

  const session = {
    executor,
    defer,
    /** Writes rows, at least one, without waiting for the database. */
    write<T>(rowWrite: RowWrite<T>, rows: readonly T[]): void {
      const { postgres, toError } = rowWrite
      const written = runSql(postgres, [toJsonRows(rowWrite, rows)])
      defer(toError ? written.catch((error) => Promise.reject(toError(error))) : written)
    },
    /** Waits for every statement that was deferred. @throws the first error among them */
    async settle(): Promise<void> {
      const errors = await settleSent()
      if (errors.length > 0) throw errors.find(isCause) ?? errors[0]
    },
    /** Finds what aborted the transaction, if a statement failed because a deferred one had. */
    findCause: async (error: unknown): Promise<unknown> =>
      isCause(error) ? error : ((await settleSent()).find(isCause) ?? error),
    /** Forgets what was sent: the transaction is rolled back. */
    discard: () => void (sent = []),
  }
  sessions.set(executor, session)
  return session
}

/** The transaction was aborted by an earlier error. */
export const abortedCode = '25P02'

const isCause = (error: unknown) => driverCode(error) !== abortedCode
