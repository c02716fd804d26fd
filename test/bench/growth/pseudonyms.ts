import type { Database } from 'bun:sqlite'
import { lowestId } from '../../../src/domain/model/ids.ts'

/** The forms in which a request and its log entries store a phone. */
export type PhoneForms = {
  seal(requestId: string, phone: string): string
  open(requestId: string, sealed: string): string
  pseudonym(developerId: string, phone: string): string
}

type Row = { id: string; developer_id: string; phone: string }

const developerId = '(select id from short_ids where number = developer_id) as developer_id'

const readCheckpoint = (db: Database, scan: string) =>
  db.query<{ position: string }, [string]>('select position from retention_marks where walk = ?').get(scan)
    ?.position ?? ''

const writeCheckpoint = (db: Database, scan: string, checkpoint: string) =>
  db.run('insert or replace into retention_marks (walk, position) values (?, ?)', [scan, checkpoint])

/** Pseudonymizes requests and events up to `cutoff`, as a purge would have done by then. */
export function pseudonymizePhones(db: Database, { open, pseudonym }: PhoneForms, cutoff: number): void {
  const requests = db
    .query<Row, [string, string]>(
      `select id, ${developerId}, phone from otp_requests where id > ? and id < ? order by id`,
    )
    .all(readCheckpoint(db, 'requests'), lowestId('otp', Math.max(0, cutoff)))
  const updateRequest = db.query('update otp_requests set phone = ? where id = ?')
  for (const { id, developer_id, phone } of requests)
    updateRequest.run(pseudonym(developer_id, open(id, phone)), id)
  writeCheckpoint(db, 'requests', requests.at(-1)?.id ?? readCheckpoint(db, 'requests'))

  const events = db
    .query<Row & { seq: number; payload: string | null; at: number }, [number]>(
      `select seq, request_id as id, ${developerId}, phone, payload, at from events where seq > ? order by seq limit 5000`,
    )
    .all(Number(readCheckpoint(db, 'events')))
    .filter(({ at }) => at <= cutoff)
  const updateEvent = db.query('update events set phone = ?, payload = ? where seq = ?')
  for (const { seq, id, developer_id, phone: sealed, payload } of events) {
    const phone = open(id, sealed)
    const replacement = pseudonym(developer_id, phone)
    updateEvent.run(replacement, payload?.replace(phone, replacement) ?? null, seq)
  }
  writeCheckpoint(db, 'events', String(events.at(-1)?.seq ?? readCheckpoint(db, 'events')))
}

/** Pseudonymizes identities that were not verified since `cutoff`. */
export function pseudonymizeIdentities(db: Database, { pseudonym }: PhoneForms, cutoff: number): void {
  const selectIdentities = db.query<Row, [string, number]>(
    `select id, ${developerId}, phone from identities where id > ? and last_verified_at <= ? order by id limit 5000`,
  )
  const updateIdentity = db.query('update identities set phone = ? where id = ?')
  let rows: Row[]
  let after = ''
  do {
    rows = selectIdentities.all(after, cutoff)
    for (const { id, developer_id, phone } of rows) updateIdentity.run(pseudonym(developer_id, phone), id)
    after = rows.at(-1)?.id ?? after
  } while (rows.length > 0)
}
