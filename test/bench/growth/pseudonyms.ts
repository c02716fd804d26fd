import type { Database } from 'bun:sqlite'
import { lowestId } from '../../../src/domain/model/ids.ts'

export type Pseudonym = (developerId: string, phone: string) => string

type Row = { id: string; developer_id: string; phone: string }

const developerId = '(select id from short_ids where number = developer_id) as developer_id'

const position = (db: Database, walk: string) =>
  db.query<{ position: string }, [string]>('select position from retention_marks where walk = ?').get(walk)
    ?.position ?? ''

const setPosition = (db: Database, walk: string, to: string) =>
  db.run('insert or replace into retention_marks (walk, position) values (?, ?)', [walk, to])

/** What a purge would have done by then to requests and events of up to `until`. */
export function forgetPhones(db: Database, pseudonym: Pseudonym, until: number): void {
  const requests = db
    .query<Row, [string, string]>(
      `select id, ${developerId}, phone from otp_requests where id > ? and id < ? order by id`,
    )
    .all(position(db, 'requests'), lowestId('otp', Math.max(0, until)))
  const inRequest = db.query('update otp_requests set phone = ? where id = ?')
  for (const { id, developer_id, phone } of requests) inRequest.run(pseudonym(developer_id, phone), id)
  setPosition(db, 'requests', requests.at(-1)?.id ?? position(db, 'requests'))

  const events = db
    .query<Omit<Row, 'id'> & { seq: number; payload: string | null; at: number }, [number]>(
      `select seq, ${developerId}, phone, payload, at from events where seq > ? order by seq limit 5000`,
    )
    .all(Number(position(db, 'events')))
    .filter(({ at }) => at <= until)
  const inEvent = db.query('update events set phone = ?, payload = ? where seq = ?')
  for (const { seq, developer_id, phone, payload } of events) {
    const name = pseudonym(developer_id, phone)
    inEvent.run(name, payload?.replace(phone, name) ?? null, seq)
  }
  setPosition(db, 'events', String(events.at(-1)?.seq ?? position(db, 'events')))
}

/** The same to identities that were not verified since. */
export function forgetIdentities(db: Database, pseudonym: Pseudonym, until: number): void {
  const list = db.query<Row, [string, number]>(
    `select id, ${developerId}, phone from identities where id > ? and last_verified_at <= ? order by id limit 5000`,
  )
  const inIdentity = db.query('update identities set phone = ? where id = ?')
  let rows: Row[]
  let after = ''
  do {
    rows = list.all(after, until)
    for (const { id, developer_id, phone } of rows) inIdentity.run(pseudonym(developer_id, phone), id)
    after = rows.at(-1)?.id ?? after
  } while (rows.length > 0)
}
