import type { Database } from 'bun:sqlite'
import type { Known, Ledger } from './ledger.ts'

type Row = { status: string; attempts: number; verified_at: number | null }

const rowOf = `select status, attempts, verified_at from otp_requests where id = ?`

/** Whether the database has what was acknowledged of these requests. @returns what it has not */
export function checkRequests(database: Database, requests: Iterable<Known>): string[] {
  const find = database.prepare<Row, [string]>(rowOf)
  const broken: string[] = []
  for (const known of requests) {
    const row = find.get(known.id)
    broken.push(...(row === null ? [`${known.id} was acknowledged and is gone`] : faultsOf(known, row)))
    known.attemptsSeen = Math.max(known.attemptsSeen, row?.attempts ?? 0)
  }
  find.finalize()
  return broken
}

function faultsOf(known: Known, row: Row): string[] {
  const { id, verifiedAt } = known
  const broken: string[] = []
  const isVerified = row.status === 'verified'
  if (verifiedAt !== undefined) {
    if (!isVerified) broken.push(`${id} was verified and is ${row.status}`)
    else if (row.verified_at !== Date.parse(verifiedAt)) broken.push(`${id} was verified at another time`)
  } else if (isVerified && !known.maybeVerified) broken.push(`${id} is verified, and nobody did that`)
  const success = verifiedAt === undefined ? 0 : 1
  const least = known.wrong + success
  const most = known.wrong + known.unanswered + success
  if (row.attempts < least) broken.push(`${id}: ${row.attempts} of ${least} attempts are counted`)
  if (row.attempts > most) broken.push(`${id}: ${row.attempts} attempts are counted, ${most} were made`)
  if (row.attempts < known.attemptsSeen) {
    broken.push(`${id}: attempts fell from ${known.attemptsSeen} to ${row.attempts}`)
  }
  return broken
}

/** Sums that hold between the tables, whatever was acknowledged: a transaction stands whole or not at all. */
const sums: Record<string, string> = {
  'requests and their otp.sent events': `select (select count(*) from otp_requests)
     - (select count(distinct request_id) from events where type = 'otp.sent')`,
  'verified requests and otp.verified events': `select (select count(*) from otp_requests where status = 'verified')
     - (select count(*) from events where type = 'otp.verified')`,
  'otp.verified events of the same request': `select count(*) - count(distinct request_id) from events where type = 'otp.verified'`,
  'verified requests and verifications of identities': `select (select count(*) from otp_requests where status = 'verified')
     - (select coalesce(sum(verification_count), 0) from identities)`,
  'verified requests and the daily counts': `select (select count(*) from otp_requests where status = 'verified')
     - (select coalesce(sum(verified), 0) from daily_counts)`,
  'requests and the daily counts': `select (select count(*) from otp_requests) - (select coalesce(sum(requests), 0) from daily_counts)`,
  'wrong attempts and their events': `select (select coalesce(sum(attempts), 0) from otp_requests)
     - (select count(*) from events where type in ('otp.attempt_failed', 'otp.verified'))`,
  'events and their numbers': `select (select value from counters where name = 'event_seq') - (select coalesce(max(seq), 0) from events)`,
}

/** Whether the tables agree with one another. @returns where they do not */
export function checkSums(database: Database): string[] {
  return Object.entries(sums).flatMap(([name, query]) => {
    const difference = Object.values(database.query<Record<string, number>, []>(query).get() ?? {})[0]
    return difference === 0 ? [] : [`${name} differ by ${difference}`]
  })
}

/** @param pragma `integrity_check` looks at indexes too, and takes several times as long */
export function checkFile(database: Database, pragma: 'quick_check' | 'integrity_check'): string[] {
  const row = database.query<Record<string, string>, []>(`PRAGMA ${pragma}(1)`).get()
  const [answer] = Object.values(row ?? {})
  return answer === 'ok' ? [] : [`${pragma}: ${answer}`]
}

/** How many requests are there that nobody was told of. */
export function countUnheard(database: Database, ledger: Ledger): number {
  const row = database.query<{ n: number }, []>('select count(*) as n from otp_requests').get()
  return (row?.n ?? 0) - ledger.requests.size
}
