import type { Database } from 'bun:sqlite'
import { fillLists } from '../../../src/store/sqlite/list-fill.ts'
import type { NewId } from '../../../src/domain/model/ids.ts'
import type { PhoneForms } from './pseudonyms.ts'
import type { NewRequest, Source } from './request-sources.ts'
import { utcDay } from '../../../src/shared/durations.ts'

export type SentRequest = NewRequest & { id: string; at: number }
export type Ending = 'verified' | 'expired' | 'failed' | 'canceled'

const lifetimeMs = 300_000
/** Retention of message records when providers deliver messages. */
const messageRetentionMs = 7 * 24 * 60 * 60 * 1000

/** Counts the requests by application, country, channel and provider. */
const breakdownSql = `insert into breakdown_counts
    (day, developer_id, app_id, country, channel, provider, requests, sent, delivered, verified, failed)
  select created_at / 86400000, developer_id, app_id, country, channel, provider, count(*), count(*), count(*),
    sum(status = 'verified'), sum(status = 'failed' or status = 'expired')
  from otp_requests group by 1, 2, 3, 4, 5, 6`

/** Writes the history of each request as migration 0022 does. */
const historySql = `create temp table entries as select request_id, seq, type, status, at from events order by request_id, seq;
  create index temp.entries_by_request on entries (request_id, seq);
  update otp_requests set history = (select group_concat(line, '') from (
    select case type when 'otp.attempt_failed' then 'w' else substr(type, 5, 1) end || substr(e.status, 1, 1) || ','
      || (e.at - created_at) || ',' || seq || ',' || char(10) as line
    from entries e where request_id = otp_requests.id order by seq));
  drop table entries`

/** Builds SQL for the integer key of a developer, project or application id. */
const shortIdSql = (id: string) => `(select number from short_ids where id = ${id})`

/** Creates the rows that otpd writes for a request and its outcome, directly in the tables. */
export function createRecords(db: Database, newId: NewId, { seal }: Pick<PhoneForms, 'seal'>) {
  let seq = 0
  const counts = new Map<string, { requests: number; verified: number; failed: number; active: number }>()
  const endpoint = db
    .query<{ id: string; app_id: string }, []>('select id, app_id from webhook_endpoints')
    .get()
  const randomText = (bytes: number) =>
    Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('base64url')

  const insertRequest = db.prepare(
    `insert into otp_requests (id, developer_id, project_id, app_id, environment, phone, country, status, channel,
       provider, delivery_status, code_salt, code_hash, created_at, sent_at, expires_at, updated_at)
     values (?1, ${shortIdSql('?2')}, ${shortIdSql('?3')}, ${shortIdSql('?4')}, 'live', ?5, 'US', 'pending', 'sms', 'twilio', 'sent',
       ?6, ?7, ?8, ?8, ?9, ?8)`,
  )
  const updateRequest = db.prepare(
    `update otp_requests set status = ?2, failure_reason = ?3, attempts = ?4, verified_at = ?5, updated_at = ?6
     where id = ?1`,
  )
  const insertEvent = db.prepare(
    `insert into events (seq, type, developer_id, app_id, request_id, phone, status, payload, at)
     values (?, ?, ${shortIdSql('?')}, ${shortIdSql('?')}, ?, ?, ?, ?, ?)`,
  )
  const findIdentity = db.prepare<{ id: string; last_verified_at: number }, string[]>(
    `select id, last_verified_at from identities where developer_id = ${shortIdSql('?')} and phone = ?`,
  )
  const updateIdentity = db.prepare(
    'update identities set verification_count = verification_count + 1, last_verified_at = ?2 where id = ?1',
  )
  const insertIdentity = db.prepare(
    `insert into identities (id, developer_id, phone, country, verification_count, first_verified_at, last_verified_at)
     values (?1, ${shortIdSql('?2')}, ?3, 'US', 1, ?4, ?4)`,
  )
  const insertIdentityApplication = db.prepare(
    `insert or ignore into identity_applications (identity_id, app_id) values (?, ${shortIdSql('?')})`,
  )
  const insertDelivery = db.prepare(
    `insert into otp_deliveries (request_id, message, channels, status, provider, message_id, attempts, created_at,
       updated_at) values (?1, 0, 'sms', 'sent', 'twilio', ?2, 1, ?3, ?3)`,
  )
  const insertWebhookDelivery = db.prepare(
    `insert into webhook_deliveries (id, endpoint_id, event_seq, status, attempts, last_status_code, created_at,
       delivered_at, type, claims) values (?1, ?2, ?3, 'delivered', 1, 200, ?4, ?4, ?5, 1)`,
  )
  const insertWebhookAttempt = db.prepare(
    `insert into webhook_attempts (delivery_id, number, at, status_code, duration_ms, body) values (?, 1, ?, 200, 35, 'ok')`,
  )

  function addToCount(
    { developerId }: Source,
    at: number,
    name: 'requests' | 'verified' | 'failed' | 'active',
    amount = 1,
  ) {
    const key = `${developerId} ${utcDay(at)}`
    const day = counts.get(key) ?? { requests: 0, verified: 0, failed: 0, active: 0 }
    day[name] += amount
    counts.set(key, day)
  }

  function recordEvent(sent: SentRequest, type: string, status: string, at: number) {
    const { source, phone, id } = sent
    const hasWebhook = type === 'otp.verified' && endpoint?.app_id === source.appId
    const payload = hasWebhook
      ? JSON.stringify({ type, data: { requestId: id, phone, metadata: null } }).padEnd(500)
      : null
    insertEvent.run(++seq, type, source.developerId, source.appId, id, seal(id, phone), status, payload, at)
    if (!hasWebhook) return
    const deliveryId = newId('dlv')
    insertWebhookDelivery.run(deliveryId, endpoint.id, seq, at, type)
    insertWebhookAttempt.run(deliveryId, at)
  }

  function recordVerification({ source, phone }: SentRequest, at: number) {
    const existing = findIdentity.get(source.developerId, phone)
    const id = existing?.id ?? newId('idn')
    if (existing) {
      updateIdentity.run(id, at)
      addToCount(source, existing.last_verified_at, 'active', -1)
    } else insertIdentity.run(id, source.developerId, phone, at)
    insertIdentityApplication.run(id, source.appId)
    addToCount(source, at, 'active')
    addToCount(source, at, 'verified')
  }

  return {
    send({ source, phone }: NewRequest, at: number): SentRequest {
      const sent = { source, phone, id: newId('otp'), at }
      const { developerId, projectId, appId } = source
      const sealed = seal(sent.id, phone)
      const texts = [sent.id, developerId, projectId, appId, sealed, randomText(16), randomText(12)]
      insertRequest.run(...texts, at, at + lifetimeMs)
      if (at > Date.now() - messageRetentionMs) insertDelivery.run(sent.id, randomText(24), at)
      addToCount(source, at, 'requests')
      recordEvent(sent, 'otp.sent', 'pending', at)
      return sent
    },

    end(sent: SentRequest, ending: Ending, at: number): void {
      const attempts = { verified: 1, failed: 5, expired: 0, canceled: 0 }[ending]
      const isVerified = ending === 'verified'
      const reason = ending === 'failed' ? 'max_attempts' : null
      updateRequest.run(sent.id, ending, reason, attempts, isVerified ? at : null, at)
      if (isVerified) recordVerification(sent, at)
      if (ending === 'failed' || ending === 'expired') addToCount(sent.source, at, 'failed')
      if (ending === 'failed')
        for (let i = 0; i < attempts; i++) recordEvent(sent, 'otp.attempt_failed', 'pending', at)
      recordEvent(sent, `otp.${ending}`, ending, at)
    },

    /** @param auditEntryCount number of audit entries for the busy developer */
    finish(developerId: string, auditEntryCount: number, now: number): void {
      db.run(`update counters set value = ? where name = 'event_seq'`, [seq])
      const day = db.prepare(
        `insert into daily_counts (developer_id, day, requests, sent, verified, failed, active)
         values (?1, ?2, ?3, ?3, ?4, ?5, ?6)`,
      )
      for (const [key, { requests, verified, failed, active }] of counts) {
        const [developer = '', date] = key.split(' ')
        day.run(developer, Number(date), requests, verified, failed, active)
      }
      const insertAuditEntry = db.prepare(
        `insert into audit_entries (id, developer_id, action, actor_id, target_id, target_name, source, ip, at)
         values (?1, ?2, 'application.updated', ?2, 'app_1', 'bench', 'api', '192.0.2.1', ?3)`,
      )
      for (let i = 0; i < auditEntryCount; i++) insertAuditEntry.run(newId('aud'), developerId, now)
      db.run(breakdownSql)
      db.run(historySql)
      fillLists(db)
    },
  }
}
