import type { QueryExecutor } from './database.ts'
import { driverCode, unavailable } from './errors.ts'
import type { Row, RowWrite } from './row-write.ts'
import { buildManyRows, keyOf, type ManyRows } from './row-writes.ts'

/**
 * State of one connection. Writes of rows are gathered: consecutive ones with the same statement go to the server in
 * one, and none of them is awaited before the commit, so that the changes of a transaction cost one round trip.
 */
export type PostgresSession = ReturnType<typeof createPostgresSession>

/** Sessions by the executor of their connection. */
const sessions = new WeakMap<object, PostgresSession>()

export const sessionOf = (executor: QueryExecutor): PostgresSession => {
  const session = sessions.get(executor)
  if (!session) throw new Error('rows can be written in a transaction only')
  return session
}

/** A prepared statement that writes many rows. */
type PreparedRows = {
  run(values: Row): Promise<unknown>
  toValues: ManyRows['toValues']
  key: readonly string[] | undefined
}

/**
 * Creates the state of a connection.
 *
 * @param executor runs its statements
 * @param isFlushedFirst whether `flush` is called before each of them; otherwise rows are not gathered
 */
export function createPostgresSession(executor: QueryExecutor, isFlushedFirst: boolean) {
  let gathered: { rows: Row[]; keys: Set<string>; write: PreparedRows } | undefined
  let sent: Array<Promise<unknown>> = []

  /** Sends the gathered rows. Every other statement of the connection calls it first. */
  function flush(): void {
    if (!gathered) return
    const { write, rows } = gathered
    gathered = undefined
    defer(write.run(write.toValues(rows)))
  }

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

  function gather(write: PreparedRows, row: Row): void {
    const key = write.key?.map((name) => String(row[name])).join('\n')
    // One statement must not write a row twice.
    if (gathered?.write !== write || (key !== undefined && gathered.keys.has(key))) {
      flush()
      gathered = { rows: [], keys: new Set(), write }
    }
    if (key !== undefined) gathered.keys.add(key)
    gathered.rows.push(row)
    if (!isFlushedFirst) flush()
  }

  const session = {
    executor,
    flush,
    defer,
    /** Prepares a write. The function that it returns does not wait for the database. */
    prepareWrite(write: RowWrite, prepare: (statement: ManyRows['statement']) => PreparedRows['run']) {
      let prepared: PreparedRows | undefined
      return (row: Row): void => {
        if (!prepared) {
          const { statement, toValues } = buildManyRows(executor, write)
          const { toError } = write.kind === 'insert' ? write : {}
          const send = prepare(statement)
          const run = toError
            ? (values: Row) => send(values).catch((error) => Promise.reject(toError(error)))
            : send
          prepared = { run, toValues, key: keyOf(write) }
        }
        gather(prepared, row)
      }
    },
    /** Waits for every statement that was deferred. @throws the first error among them */
    async settle(): Promise<void> {
      flush()
      const errors = await settleSent()
      if (errors.length > 0) throw errors.find(isCause) ?? errors[0]
    },
    /** Finds what aborted the transaction, if a statement failed because a deferred one had. */
    findCause: async (error: unknown): Promise<unknown> =>
      isCause(error) ? error : ((await settleSent()).find(isCause) ?? error),
    /** Forgets what was not sent: the transaction is rolled back. */
    discard(): void {
      gathered = undefined
      sent = []
    },
  }
  sessions.set(executor, session)
  return session
}

/** The transaction was aborted by an earlier error. */
const abortedCode = '25P02'

const isCause = (error: unknown) => driverCode(error) !== abortedCode

/**
 * Checks the result of a commit: that of an aborted transaction succeeds, but rolls it back.
 *
 * @throws UNAVAILABLE nothing was written
 */
export function requireCommitted(command: string | undefined): void {
  if (command !== 'COMMIT') throw unavailable(abortedCode)
}
