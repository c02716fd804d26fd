import { Client } from 'pg'
import { createIds } from '../../../src/domain/model/ids.ts'

// Upper limit of PostgreSQL on this machine: Bun's own server, JSON in and out, and only the rows of the request and of
// its log entry, in the tables and indexes of otpd. All requests that wait share one statement, which is a transaction of
// its own; two run at the same time, as in otpd. No authentication, validation, limits, locks, counters or messages.
//
// A send inserts the request and its entry. A verification changes the request, and inserts its entry and the user.
//
// bun bare-rows.ts, with the database in DATABASE_URL. Prints its port. GET /sent returns, once, the ids of the requests
// sent so far.

const connectionString = process.env['DATABASE_URL'] ?? ''
const groupsMax = 2
const groupMax = 256

const sendSql = `with given as (select * from unnest($1::text[], $2::text[]) as given(id, phone)),
  inserted as (
    insert into otp_requests (id, developer_id, project_id, app_id, environment, phone, country, status, channel,
      code_salt, code_hash, created_at, sent_at, expires_at, updated_at)
    select id, 'dev_1', 'prj_1', 'app_1', 'live', phone, 'US', 'pending', 'sms', 'salt', 'hash', $3::bigint, $3, $3 + 300000, $3
    from given)
  insert into events (seq, type, developer_id, app_id, request_id, phone, status, at)
  select nextval('bare_seq'), 'otp.sent', 'dev_1', 'app_1', id, phone, 'pending', $3 from given`

const verifySql = `with changed as (
    update otp_requests set status = 'verified', attempts = attempts + 1, verified_at = $2::bigint, updated_at = $2
    where id = any($1::text[]) returning id, phone),
  users as (
    insert into phones (phone_hash, developer_id, environment, phone, last_sent_at, identity_id, verification_count,
      first_verified_at, last_verified_at)
    select id, 'dev_1', 'live', phone, $2, id, 1, $2, $2 from changed)
  insert into events (seq, type, developer_id, app_id, request_id, phone, status, at)
  select nextval('bare_seq'), 'otp.verified', 'dev_1', 'app_1', id, phone, 'verified', $2 from changed`

/** Creates a queue whose jobs share transactions. */
function createGroups<T>(run: (client: Client, jobs: readonly T[]) => Promise<unknown>) {
  let waiting: Array<{ job: T; done(): void }> = []

  async function runGroup(client: Client): Promise<void> {
    const group = waiting.splice(0, groupMax)
    await run(
      client,
      group.map(({ job }) => job),
    )
    for (const { done } of group) done()
    idle.push(client)
    schedule()
  }

  function schedule(): void {
    if (waiting.length === 0) return
    const client = idle.pop()
    // The next turn of the event loop, so that requests that arrive together share a group.
    if (client) setImmediate(() => void runGroup(client))
  }

  return (job: T) =>
    new Promise<void>((done) => {
      waiting.push({ job, done })
      schedule()
    })
}

const idle = await Promise.all(
  Array.from({ length: groupsMax }, async () => {
    const client = new Client({ connectionString })
    await client.connect()
    return client
  }),
)
await idle[0]?.query('create sequence if not exists bare_seq')

const newId = createIds({ now: Date.now }, (bytes) => crypto.getRandomValues(bytes))
let sent: string[] = []
const insert = createGroups<{ id: string; phone: string }>((client, jobs) =>
  client.query({
    name: 'send',
    text: sendSql,
    values: [jobs.map(({ id }) => id), jobs.map(({ phone }) => phone), Date.now()],
  }),
)
const verify = createGroups<string>((client, ids) =>
  client.query({ name: 'verify', text: verifySql, values: [ids, Date.now()] }),
)

// Only the load calls this server, so bodies need no validation.
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  routes: {
    '/v1/otp/send': {
      async POST(request) {
        const { phone } = (await request.json()) as { phone: string }
        const id = newId('otp')
        await insert({ id, phone })
        sent.push(id)
        const expiresAt = new Date(Date.now() + 300_000).toISOString()
        return Response.json({ data: { requestId: id, phone, status: 'pending', expiresAt } })
      },
    },
    '/v1/otp/verify': {
      async POST(request) {
        const { requestId } = (await request.json()) as { requestId: string }
        await verify(requestId)
        const verifiedAt = new Date().toISOString()
        return Response.json({ data: { requestId, status: 'verified', verifiedAt } })
      },
    },
    '/sent': () => {
      const ids = sent
      sent = []
      return Response.json(ids)
    },
  },
})
process.stdout.write(`${server.port}\n`)
