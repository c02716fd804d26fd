import type { ClientBase } from 'pg'
import { driverCode } from '../engine/errors.ts'
import { DatabaseUnreachable } from './connect.ts'
import { StartRefused } from '../data-dir/data-dir.ts'

/** Settings of a server on which the guarantees of otpd depend. */
export type ServerFacts = {
  /** As `server_version_num`: 150018 is 15.18. */
  version: number
  isInRecovery: boolean
  isReadOnly: boolean
  /** Whether the role may use the schema of the tables. */
  hasSchema: boolean
  fsync: string
  synchronousCommit: string
  /** Standbys that a commit waits for; empty: none. */
  synchronousStandbys: string
}

/** Reads the settings of the server, as this session has them. */
export async function readServerFacts(client: ClientBase): Promise<ServerFacts> {
  const { rows } = await client.query<ServerFacts>(`select
    current_setting('server_version_num')::int as "version",
    pg_is_in_recovery() as "isInRecovery",
    current_setting('default_transaction_read_only') = 'on' as "isReadOnly",
    current_schema() is not null as "hasSchema",
    current_setting('fsync') as "fsync",
    current_setting('synchronous_commit') as "synchronousCommit",
    coalesce(current_setting('synchronous_standby_names', true), '') as "synchronousStandbys"`)
  const [facts] = rows
  if (!facts) throw new Error('the server returned no settings')
  return facts
}

const versionMin = 14

/**
 * Refuses a server that cannot store, or that may lose what it acknowledged.
 *
 * @param isUnsafe accepts a server that may lose acknowledged writes
 * @throws DatabaseUnreachable it takes no writes, as for a moment in a failover; StartRefused
 */
export function requireSafeServer(facts: ServerFacts, isUnsafe: boolean): void {
  const version = Math.floor(facts.version / 10_000)
  if (version < versionMin) {
    throw new StartRefused(
      `the server is PostgreSQL ${version}, and otpd needs ${versionMin} or later`,
      'Upgrade the server, or name another one.',
    )
  }
  if (facts.isInRecovery) {
    throw new DatabaseUnreachable(
      'the server is a standby, which accepts no writes',
      'Name the primary server in the URL of the database.',
    )
  }
  if (facts.isReadOnly) {
    throw new DatabaseUnreachable(
      'the database accepts no writes (default_transaction_read_only=on)',
      'Turn it off: alter database NAME set default_transaction_read_only = off.',
    )
  }
  if (!facts.hasSchema) {
    throw new StartRefused(
      'the role of the database URL may not use the schema of the tables',
      'Grant it as the owner of the schema: grant usage on schema public to ROLE.',
    )
  }
  if (isUnsafe) return
  const lossy = [
    ...(facts.fsync === 'off' ? ['fsync=off'] : []),
    ...(facts.synchronousCommit === 'off' ? ['synchronous_commit=off'] : []),
  ]
  if (lossy.length > 0) {
    throw new StartRefused(
      `acknowledged codes would be lost in a crash of the server (${lossy.join(', ')})`,
      'Turn it on at the server; for tests, set OTPD_DATABASE_UNSAFE=1.',
    )
  }
}

const clockSamples = 3

/**
 * Measures how far the server's clock is ahead of this one, in milliseconds. The error is at most half of the shortest
 * round trip.
 *
 * @param now this node's time
 */
export async function measureClock(client: ClientBase, now: () => number): Promise<number> {
  let best = { roundTripMs: Infinity, aheadMs: 0 }
  for (let sample = 0; sample < clockSamples; sample++) {
    const sentAt = now()
    const { rows } = await client.query<{ ms: string }>(
      'select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms',
    )
    const roundTripMs = now() - sentAt
    if (roundTripMs < best.roundTripMs)
      best = { roundTripMs, aheadMs: Math.round(Number(rows[0]?.ms) - sentAt - roundTripMs / 2) }
  }
  return best.aheadMs
}

/** Measures the shortest time of a statement, in milliseconds. */
export async function measureLatency(client: ClientBase): Promise<number> {
  let shortest = Infinity
  for (let sample = 0; sample < clockSamples; sample++) {
    const sentAt = performance.now()
    await client.query('select 1')
    shortest = Math.min(shortest, performance.now() - sentAt)
  }
  return shortest
}

/** Tokens and signatures, which others judge by their own clocks, then fail at random. */
const clockAheadMaxMs = 30_000
const clockWarnMs = 1_000

/**
 * Requires that the clocks of the server and of this node agree.
 *
 * @param aheadMs how far the server's clock is ahead
 * @returns the difference in words if it should be reported
 * @throws StartRefused it is more than 30 seconds
 */
export function requireSameTime(aheadMs: number): string | undefined {
  const size = Math.abs(aheadMs)
  if (size <= clockWarnMs) return undefined
  const text = `this machine's clock is ${(size / 1000).toFixed(1)} s ${aheadMs > 0 ? 'behind' : 'ahead of'} the database's`
  if (size <= clockAheadMaxMs) return text
  throw new StartRefused(text, 'Synchronize both clocks, for example with: timedatectl set-ntp true')
}

/**
 * Requires that a transaction keeps its connection, which poolers in statement mode do not allow.
 *
 * @throws StartRefused
 */
export async function requireTransactions(client: ClientBase): Promise<void> {
  try {
    await client.query('begin')
    await client.query('commit')
  } catch (error) {
    if (driverCode(error) !== '08P01') throw error
    throw new StartRefused(
      'a connection pooler ends transactions after each statement',
      'Use its transaction mode (pool_mode = transaction), or the address of the server itself.',
    )
  }
}

/**
 * Requires that statements which are prepared under a name work for another connection too. A pooler that does not know
 * them gives both the same connection of the server.
 *
 * @throws the server's error: 42P05, 26000
 */
export async function requireNamedStatements(first: ClientBase, second: ClientBase): Promise<void> {
  const name = `otpd_${crypto.randomUUID().replaceAll('-', '')}`
  for (const client of [first, second, first]) await client.query({ name, text: 'select 1' })
}
