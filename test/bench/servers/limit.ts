import { Database } from 'bun:sqlite'
import { fdatasync, openSync } from 'node:fs'

// Upper limit of the machine: Bun's own server, JSON in and out, and only the indispensable rows, written by group commit:
// all requests of one turn of the event loop share a transaction. As in otpd, another thread brings it to the disk while
// the next one is written, and responses are sent after that. No authentication, validation, hashing, rate limits,
// counters or delivery.
//
// A send inserts the request and its event. A verification reads the request, updates its attempts and status, inserts the
// event, and inserts or updates the identity. Two secondary indexes. The same number of applications as for
// otpd, of one developer.
//
// bun limit.ts FILE APPLICATIONS. Prints its port. GET /sent returns, once, the ids of the requests sent so far.

const [file = '', applications = '200'] = process.argv.slice(2)
const db = new Database(file, { create: true, strict: true })
for (const pragma of [
  'journal_mode = WAL',
  // A COMMIT does not wait for the disk: see `flushCommitted`.
  'synchronous = NORMAL',
  'wal_autocheckpoint = 4000',
  'cache_size = -65536',
])
  db.run(`PRAGMA ${pragma}`)
db.run(`create table otp_requests (
  id text primary key, app_id text not null, phone text not null, code_hash text not null,
  status text not null default 'pending', attempts integer not null default 0, created_at integer not null,
  expires_at integer not null, verified_at integer
) without rowid`)
db.run('create index otp_requests_by_application on otp_requests (app_id, created_at)')
db.run(`create table events (
  id integer primary key, app_id text not null, request_id text not null, kind text not null, phone text not null,
  at integer not null
)`)
db.run('create index events_by_application on events (app_id, at)')
db.run(`create table identities (
  developer_id text not null, phone text not null, first_app text not null, first_at integer not null,
  last_at integer not null, n integer not null default 1, primary key (developer_id, phone)
) without rowid`)

const begin = db.query('begin immediate')
const commit = db.query('commit')
const insertRequest = db.query<void, [string, string, string, string, number, number]>(
  'insert into otp_requests (id, app_id, phone, code_hash, created_at, expires_at) values (?, ?, ?, ?, ?, ?)',
)
const insertEvent = db.query<void, [string, string, string, string, number]>(
  'insert into events (app_id, request_id, kind, phone, at) values (?, ?, ?, ?, ?)',
)
const findRequest = db.query<{ appId: string; phone: string }, [string]>(
  'select app_id as appId, phone from otp_requests where id = ?',
)
const markVerified = db.query<void, [number, string]>(
  "update otp_requests set attempts = attempts + 1, status = 'verified', verified_at = ? where id = ?",
)
const putIdentity = db.query<void, [string, string, number, number]>(
  `insert into identities (developer_id, phone, first_app, first_at, last_at) values ('dev', ?, ?, ?, ?)
   on conflict do update set last_at = excluded.last_at, n = n + 1`,
)

type Job = { work(): unknown; respond(response: Response): void }
let jobs: Job[] = []
/** Sends the responses of the batches that are not on the disk yet. */
let unflushed: Array<() => void> = []
let isFlushing = false
const json = { headers: { 'content-type': 'application/json' } }

function commitBatch(): void {
  const batch = jobs
  jobs = []
  begin.run()
  const results = batch.map((job) => job.work())
  commit.run()
  unflushed.push(() => {
    for (const [index, job] of batch.entries())
      job.respond(new Response(JSON.stringify(results[index]), json))
  })
  if (!isFlushing) flushCommitted()
}

/** The write-ahead log, which exists since the first table was created, and keeps its file. */
const log = openSync(`${file}-wal`, 'r')

function flushCommitted(): void {
  const flushed = unflushed
  unflushed = []
  isFlushing = true
  fdatasync(log, (error) => {
    if (error) throw error
    isFlushing = false
    for (const respond of flushed) respond()
    if (unflushed.length > 0) flushCommitted()
  })
}

const write = (work: () => unknown) =>
  new Promise<Response>((respond) => {
    if (jobs.push({ work, respond }) === 1) setImmediate(commitBatch)
  })

const codeHash = '0'.repeat(64)
const lifetimeMs = 300_000
let sends = 0
let sent: string[] = []

function send(phone: string): Promise<Response> {
  const now = Date.now()
  const id = Bun.randomUUIDv7()
  const app = `app_${String(sends++ % Number(applications)).padStart(6, '0')}`
  const expiresAt = new Date(now + lifetimeMs).toISOString()
  return write(() => {
    insertRequest.run(id, app, phone, codeHash, now, now + lifetimeMs)
    insertEvent.run(app, id, 'otp.sent', phone, now)
    sent.push(id)
    return { data: { requestId: id, phone, status: 'pending', expiresAt } }
  })
}

function verify(id: string): Promise<Response> {
  const now = Date.now()
  return write(() => {
    const request = findRequest.get(id)
    if (!request) throw new Error(`no request ${id}`)
    markVerified.run(now, id)
    insertEvent.run(request.appId, id, 'otp.verified', request.phone, now)
    putIdentity.run(request.phone, request.appId, now, now)
    const verifiedAt = new Date(now).toISOString()
    return { data: { requestId: id, status: 'verified', phone: request.phone, verifiedAt } }
  })
}

// Only the load calls this server, so bodies need no validation.
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  routes: {
    '/v1/otp/send': { POST: async (request) => send(((await request.json()) as { phone: string }).phone) },
    '/v1/otp/verify': {
      POST: async (request) => verify(((await request.json()) as { requestId: string }).requestId),
    },
    '/sent': () => {
      const ids = sent
      sent = []
      return Response.json(ids)
    },
  },
})
process.stdout.write(`${server.port}\n`)
