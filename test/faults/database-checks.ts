import type { Database } from 'bun:sqlite'
import type { TrackedRequest, Ledger } from './ledger.ts'

type Row = { status: string; attempts: number; verified_at: number | null }

const selectRow = `select status, attempts, verified_at from otp_requests where id = ?`

/** Compares the database with what was acknowledged about these requests. @returns the differences */
export function checkRequests(database: Database, requests: Iterable<TrackedRequest>): string[] {
  const find = database.prepare<Row, [string]>(selectRow)
  const violations: string[] = []
  for (const tracked of requests) {
    const row = find.get(tracked.id)
    violations.push(
      ...(row === null ? [`${tracked.id} was acknowledged and is gone`] : compareRow(tracked, row)),
    )
    tracked.attemptsSeen = Math.max(tracked.attemptsSeen, row?.attempts ?? 0)
  }
  find.finalize()
  return violations
}

function compareRow(tracked: TrackedRequest, row: Row): string[] {
  const { id, verifiedAt } = tracked
  const violations: string[] = []
  const isVerified = row.status === 'verified'
  if (verifiedAt !== undefined) {
    if (!isVerified) violations.push(`${id} was verified and is ${row.status}`)
    else if (row.verified_at !== Date.parse(verifiedAt)) violations.push(`${id} was verified at another time`)
  } else if (isVerified && !tracked.maybeVerified)
    violations.push(`${id} is verified, but no call verified it`)
  const success = verifiedAt === undefined ? 0 : 1
  const attemptsMin = tracked.wrong + success
  const attemptsMax = tracked.wrong + tracked.unanswered + success
  if (row.attempts < attemptsMin)
    violations.push(`${id}: ${row.attempts} of ${attemptsMin} attempts are counted`)
  if (row.attempts > attemptsMax)
    violations.push(`${id}: ${row.attempts} attempts are counted, ${attemptsMax} were made`)
  if (row.attempts < tracked.attemptsSeen) {
    violations.push(`${id}: attempts fell from ${tracked.attemptsSeen} to ${row.attempts}`)
  }
  return violations
}

/** Differences between tables that must be 0 whatever was acknowledged, because transactions are atomic. */
const invariantQueries: Record<string, string> = {
  'requests and their otp.sent events': `select (select count(*) from otp_requests)
     - (select count(distinct request_id) from events where type = 'otp.sent')`,
  'verified requests and otp.verified events': `select (select count(*) from otp_requests where status = 'verified')
     - (select count(*) from events where type = 'otp.verified')`,
  'otp.verified events of the same request': `select count(*) - count(distinct request_id) from events where type = 'otp.verified'`,
  'verified requests and verifications of identities': `select (select count(*) from otp_requests where status = 'verified')
     - (select coalesce(sum(verification_count), 0) from phones)`,
  'verified requests and the daily counts': `select (select count(*) from otp_requests where status = 'verified')
     - (select coalesce(sum(verified), 0) from daily_counts)`,
  'requests and the daily counts': `select (select count(*) from otp_requests) - (select coalesce(sum(requests), 0) from daily_counts)`,
  'wrong attempts and their events': `select (select coalesce(sum(attempts), 0) from otp_requests)
     - (select count(*) from events where type in ('otp.attempt_failed', 'otp.verified'))`,
  'events and their numbers': `select (select value from counters where name = 'event_seq') - (select coalesce(max(seq), 0) from events)`,
}

/** Checks that the tables are consistent with one another. @returns the violations */
export function checkInvariants(database: Database): string[] {
  return Object.entries(invariantQueries).flatMap(([name, query]) => {
    const difference = Object.values(database.query<Record<string, number>, []>(query).get() ?? {})[0]
    return difference === 0 ? [] : [`${name} differ by ${difference}`]
  })
}

/** Runs a SQLite integrity check. @param pragma `integrity_check` includes indexes and takes several times as long */
export function checkFile(database: Database, pragma: 'quick_check' | 'integrity_check'): string[] {
  const row = database.query<Record<string, string>, []>(`PRAGMA ${pragma}(1)`).get()
  const [response] = Object.values(row ?? {})
  return response === 'ok' ? [] : [`${pragma}: ${response}`]
}

/** Counts stored requests that were never acknowledged to a caller. */
export function countUnacknowledged(database: Database, ledger: Ledger): number {
  const row = database.query<{ n: number }, []>('select count(*) as n from otp_requests').get()
  return (row?.n ?? 0) - ledger.requests.size
}
