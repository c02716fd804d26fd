import type { Duplex } from 'node:stream'
import { drizzle } from 'drizzle-orm/node-postgres'
import { Pool, type PoolClient, type PoolConfig } from 'pg'
import type { QueryExecutor } from '../engine/database.ts'
import { coalesceWrites } from './coalesce-writes.ts'
import { toConnectError, unavailable } from '../engine/errors.ts'
import { abortedCode, createPostgresSession, type PostgresSession } from './session.ts'
import { createPrimary } from './primary.ts'
import type { OpenTransaction } from './transactions.ts'

export type PostgresOptions = {
  /** Connections of this process at most; at least 2. */
  connections: number
  /** Whether statements are prepared under names, which some connection poolers lose. */
  statements: 'named' | 'unnamed'
  /** Whether a connection has the options that it was started with. Connection poolers refuse or ignore them. */
  keepsOptions: boolean
  /** Name of this process among the connections of the server. */
  applicationName: string
  /** For how long a call waits for a connection, new or returned, and a group of calls for its turn. */
  acquireTimeoutMs: number
  /** Replaces each time-out of a session and of an answer in tests, which a busy machine may pause for longer; 0 is none. */
  sessionTimeoutMs: number
  /** Called for each call that fails because the database is unavailable: see `createErrorConverter`. */
  onUnavailable?: ((code: string, denied?: string) => void) | undefined
}

const connectionsDefault = 9
/**
 * Groups of calls that run at the same time: one reads its rows while the one before it commits. A third would wait for
 * rows that both write, and make groups smaller, which costs a database behind a network a tenth more CPU.
 */
export const groupsMax = 2
/** Two more for other writes. They take turns, and leave one to groups and to urgent writes: see `createWriteTurns`. */
const writersMax = groupsMax + 2
const acquireTimeoutDefaultMs = 2_000
/** For an answer: a network that swallows packets ends no connection. Longer than the server's own time-outs. */
const answerTimeoutMs = 5_000

/**
 * Time-outs of a session, so that a node that is paused or cut off holds its locks for about two seconds at most. PostgreSQL
 * ends a transaction of such a node after `idle_in_transaction_session_timeout`, and its lock may pass to the node's next
 * transaction that waits for it. That happens twice at most: a transaction waits for the one before it in the queue, then
 * for the one that has the row, each up to `lock_timeout`. The fourth has given up by the time that the third has the row.
 */
export const sessionSettings = {
  statement_timeout: '4500ms',
  lock_timeout: '1300ms',
  idle_in_transaction_session_timeout: '700ms',
}

/**
 * Statements of writers find their rows by keys, also those of rows given as JSON, which the server takes for a hundred. A
 * plan that was made while a table was still empty would read all of it until the server has gathered statistics.
 */
const writerSettings = {
  ...sessionSettings,
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  // With these settings a scan without alternative has a huge estimated cost, and would be compiled for tens of ms.
  jit: 'off',
  // Otherwise the server plans the reads of a few calls each time they run, which costs more than to run them.
  plan_cache_mode: 'force_generic_plan',
}

/**
 * Opens two pools: one that writes, whose connections are pipelined, and one that only reads, so that lists are answered
 * while all writers wait for a lock.
 */
export function connectPostgres(
  url: string,
  {
    connections = connectionsDefault,
    statements = 'named',
    keepsOptions = true,
    applicationName = 'otpd',
    acquireTimeoutMs = acquireTimeoutDefaultMs,
    sessionTimeoutMs,
  }: Partial<Omit<PostgresOptions, 'onUnavailable'>>,
) {
  const isNamed = statements === 'named'
  const timeouts =
    sessionTimeoutMs === undefined
      ? sessionSettings
      : Object.fromEntries(Object.keys(sessionSettings).map((name) => [name, `${sessionTimeoutMs}ms`]))
  const settings = { ...writerSettings, ...timeouts }
  // With 4, the least that a node may have, one reads.
  const writersCount = Math.min(writersMax, connections - 1)
  const shared: PoolConfig = {
    connectionTimeoutMillis: acquireTimeoutMs,
    query_timeout: sessionTimeoutMs ?? answerTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: applicationName,
  }
  const primary = createPrimary(url, (connectionString) => {
    const writers = createPool({
      ...shared,
      connectionString,
      max: writersCount,
      pipeline: true,
      // Otherwise each transaction sets them.
      ...(keepsOptions && { options: toOptions(settings) }),
    })
    writers.on('connect', (client) => coalesceWrites((client as ConnectedClient).connection.stream))
    const readers = createPool({
      ...shared,
      connectionString,
      max: connections - writersCount,
      ...(keepsOptions && {
        options: toOptions({ ...timeouts, default_transaction_read_only: 'on' }),
      }),
    })
    const close = async () => void (await Promise.all([writers.end(), readers.end()]))
    return { writers, readers, close }
  })
  const beginSql = keepsOptions
    ? 'begin'
    : ['begin', ...Object.entries(settings).map(([name, value]) => `set local ${name} = '${value}'`)].join(
        '; ',
      )
  const sessions = new WeakMap<PoolClient, PostgresSession>()

  /** A connection's executor and its prepared statements are made once. */
  function sessionFor(client: PoolClient): PostgresSession {
    const known = sessions.get(client)
    if (known) return known
    const session = createPostgresSession(drizzle(client) as unknown as QueryExecutor, (text, values) =>
      client.query({ ...(isNamed && { name: statementName(text) }), text, values: [...values] }),
    )
    sessions.set(client, session)
    return session
  }

  async function begin(): Promise<OpenTransaction> {
    const { writers } = await primary.connected()
    const client = await acquire(writers)
    const session = sessionFor(client)
    let isBroken = false
    // Not awaited: it goes with the first statements.
    session.defer(client.query(beginSql))
    return {
      session,
      async commit() {
        const committed = client.query('commit')
        session.defer(committed)
        await session.settle()
        // The commit of an aborted transaction succeeds, but rolls it back.
        if ((await committed).command !== 'COMMIT') throw unavailable(abortedCode)
      },
      async rollback() {
        try {
          await client.query('rollback')
        } catch {
          isBroken = true
        }
      },
      release: () => client.release(isBroken),
    }
  }

  /** The readers of the server that takes writes now. */
  const readers = {
    async query(...args: Parameters<PoolClient['query']>) {
      const client = await acquire((await primary.connected()).readers)
      let isBroken = true
      try {
        const result = await (client.query(...args) as unknown as Promise<unknown>)
        isBroken = false
        return result
      } finally {
        client.release(isBroken)
      }
    },
  }
  return {
    read: drizzle(readers as unknown as Pool) as unknown as QueryExecutor,
    begin,
    writersCount,
    isNamed,
    acquireTimeoutMs,
    suspect: primary.suspect,
    close: primary.close,
  }
}

/** The driver's types leave out the connection of a client, which submits its queries. */
type ConnectedClient = PoolClient & { connection: { stream: Duplex } }

function createPool(config: PoolConfig & { pipeline?: boolean | undefined }): Pool {
  const pool = new Pool(config)
  // The pool drops a connection that breaks while idle; a query in progress rejects with the error itself.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/** Gets a connection of a pool. @throws see `toConnectError` */
async function acquire(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw toConnectError(error)
  }
}

/** Writes settings as options of a new connection. */
export const toOptions = (settings: Readonly<Record<string, string>>) =>
  Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ')

const statementNames = new Map<string, string>()

/** Names a statement by its text: 96 bits, so that no two texts share a name. */
export function statementName(text: string): string {
  let name = statementNames.get(text)
  if (name === undefined) {
    name = new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 24)
    statementNames.set(text, name)
  }
  return name
}
