import type { Database as SqliteConnection } from 'bun:sqlite'
import type { OpenCircuit } from '../../domain/model/delivery.ts'
import { alertMs } from '../../domain/model/guard.ts'
import { countSends, listVerifiedCountries, noSends, type SendCounts } from '../engine/sending-facts.ts'
import { query, runOnSqlite, type SqlSteps } from '../engine/sql-steps.ts'

/** State of sending as the database of a server has it. Stopped servers may have left stale circuits. */
export type SendingInspection = {
  /** Providers with an open circuit. */
  openCircuits: OpenCircuit[]
  /** Countries with more unverified messages than usual. */
  guardAlerts: Array<{ country: string; until: number }>
  /** Countries in which codes were verified, the one with most first. */
  verifiedCountries: string[]
  sendCounts: SendCounts
}

/** Inspects a database of any version: a table that it lacks counts as empty. */
export function inspectSending(connection: SqliteConnection): SendingInspection {
  const runIn = <T>(table: string, steps: SqlSteps<T>, without: T): T =>
    connection.query('select 1 from sqlite_schema where name = ?').get(table) === null
      ? without
      : runOnSqlite(connection, steps)
  return {
    openCircuits: runIn(
      'provider_circuits',
      query<OpenCircuit>(
        'select node, name, failure, open_until as openUntil from provider_circuits order by name, node',
      ),
      [],
    ),
    guardAlerts: runIn(
      'guard_usage',
      query<{ country: string; until: number }>(
        `select replace(substr(subject, instr(subject, ' ') + 1), ' relay', '') as country, max(alerted_at) + ${alertMs} as until
         from guard_usage where alerted_at > 0 group by 1 order by 1`,
      ),
      [],
    ),
    verifiedCountries: runIn('breakdown_counts', listVerifiedCountries(), []),
    // A database without phones has requests without contexts.
    sendCounts: runIn('phones', countSends(), noSends),
  }
}
