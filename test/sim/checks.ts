import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { runWhile, type Simulation } from './simulation.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** Lets an hour pass without faults, and checks that all has come to rest and that nothing is missing. */
export async function checkAtRest(simulation: Simulation): Promise<void> {
  const { scheduler, client, model, shop, onViolation } = simulation
  simulation.endFaults()
  await runWhile(scheduler, simulation.whenStarted())
  if (!simulation.node()) await runWhile(scheduler, simulation.restart('kill'))
  simulation.log.open(2 * hourMs)
  // A paused process answers what it reads from memory at once, and has other calls that aren't in the file yet.
  await runWhile(scheduler, client.whenAnswered())
  const deadline = scheduler.now() + hourMs
  await scheduler.runUntil(scheduler.now() + minuteMs)
  while (scheduler.now() < deadline && findWork(simulation).length > 0)
    await scheduler.runUntil(scheduler.now() + minuteMs)
  const left = findWork(simulation)
  if (left.length > 0) onViolation({ rule: 'all comes to rest within an hour', detail: left.join() })
  if (simulation.violations.length > 0) return

  for (const [index, request] of model.requests.entries()) {
    // Reads have a limit of their own.
    if (index % 100 === 99) await scheduler.runUntil(scheduler.now() + minuteMs)
    const outcome = await runWhile(
      scheduler,
      client.call('GET', `/v1/otp/${request.id}`, { headers: shop.token }),
    )
    if (outcome.answer?.status !== 200 && !request.isErased)
      onViolation({ rule: 'a healthy server answers', detail: `${request.id}: ${outcome.answer?.status}` })
    model.onGet(request, outcome)
  }
  await checkLists(simulation)
  await checkStream(simulation)
  checkRows(simulation)
  checkLog(simulation)
}

const listAll = async (simulation: Simulation, path: string) => (await listPages(simulation, path)).flat()

/** Reads all pages of a list, the newest first. */
async function listPages(simulation: Simulation, path: string): Promise<string[][]> {
  const { scheduler, client, shop } = simulation
  const pages: string[][] = []
  for (let cursor = ''; ;) {
    const { answer } = await runWhile(
      scheduler,
      client.call('GET', `${path}${cursor}`, { headers: shop.token }),
    )
    if (answer?.status !== 200) throw new Error(`GET ${path}: ${answer?.status} ${answer?.text}`)
    const { data, pagination } = JSON.parse(answer.text) as {
      data: Array<{ id: string }>
      pagination: { nextCursor: string | null }
    }
    pages.push(data.map(({ id }) => id))
    if (pagination.nextCursor === null) return pages
    cursor = `&cursor=${encodeURIComponent(pagination.nextCursor)}`
    // Lists have a limit of their own.
    if (pages.length % 10 === 0) await scheduler.runUntil(scheduler.now() + 10_000)
  }
}

/** Lists equal a scan of the rows, and counters equal a count of them. */
async function checkLists(simulation: Simulation): Promise<void> {
  const { shop, model, onViolation, scheduler, client } = simulation
  const rows = readRows<{ id: string; app: string }>(
    simulation,
    'select r.id, s.id as app from otp_requests r join short_ids s on s.number = r.app_id',
  )
  let counted = 0
  for (const app of shop.apps) {
    const listed = await listAll(simulation, `/v1/otp?appId=${app.id}&limit=200`)
    const scanned = rows.filter((row) => row.app === app.id).map(({ id }) => id)
    counted += scanned.length
    const [inList, inRows] = [new Set(listed), new Set(scanned)]
    if (inList.size !== listed.length) onViolation({ rule: 'a list repeats nothing', detail: app.id })
    const missing = scanned.filter((id) => !inList.has(id))
    const extra = listed.filter((id) => !inRows.has(id))
    if (missing.length + extra.length > 0)
      onViolation({
        rule: 'lists equal the rows',
        detail: `missing ${missing.join()}, extra ${extra.join()}`,
      })
  }
  const inRows = new Set(rows.map(({ id }) => id))
  for (const { id } of model.requests)
    if (!inRows.has(id)) onViolation({ rule: 'nothing acknowledged is lost', detail: id })
  const { answer } = await runWhile(
    scheduler,
    client.call('GET', '/v1/analytics/summary', { headers: shop.token }),
  )
  const total = Number(answer?.data['otpRequests'])
  if (total !== counted) onViolation({ rule: 'counters equal the rows', detail: `${total} of ${counted}` })
}

/** The stream has each entry of the log once, in its order; it and webhooks have told nothing that is not in the log. */
async function checkStream(simulation: Simulation): Promise<void> {
  const { log, onViolation, events } = simulation
  const listed = (await listPages(simulation, '/v1/logs?limit=200')).toReversed().flat()
  const streamed = log.ids
  const at = listed.findIndex((id, index) => id !== streamed[index])
  if (at !== -1 && !(at >= streamed.length && listed.length - streamed.length < 3))
    onViolation({
      rule: 'a stream has no gap',
      detail: `entry ${at} of ${listed.length}: ${listed[at]}, streamed ${streamed[at]} (${streamed.length})`,
    })
  const known = new Set(listed)
  const unknown = events.find(({ id, requestId }) => requestId !== null && !known.has(id))
  if (unknown)
    onViolation({ rule: 'webhooks tell what happened', detail: `${unknown.type} of ${unknown.requestId}` })
}

/** Lists what is not done: a request whose code has expired, a message or a webhook that can be sent. */
function findWork(simulation: Simulation): string[] {
  const now = simulation.scheduler.now()
  const queries = {
    messages: 'otp_deliveries where next_attempt_at is not null',
    requests: `otp_requests where status = 'pending'`,
    // The next attempt of one that has failed many times is hours away.
    webhooks: `webhook_deliveries where status = 'pending' and next_attempt_at < ${now + 30 * minuteMs}`,
  }
  return Object.entries(queries).flatMap(([name, from]) => {
    const [row] = readRows<{ count: number }>(simulation, `select count(*) as count from ${from}`)
    return row && row.count > 0 ? [`${row.count} ${name}`] : []
  })
}

/** Events have arrived, and the file is intact. */
function checkRows(simulation: Simulation): void {
  const { onViolation, events, model } = simulation
  const count = (text: string) => readRows<{ count: number }>(simulation, text)[0]?.count ?? 0
  const pending = count("select count(*) as count from webhook_deliveries where status = 'pending'")
  if (pending === 0) {
    const received = new Set(events.map(({ type, requestId }) => `${type} ${requestId}`))
    for (const { id, successes, isErased } of model.requests)
      if (successes > 0 && !isErased && !received.has(`otp.verified ${id}`))
        onViolation({ rule: 'events arrive at least once', detail: `otp.verified of ${id}` })
  }
  const integrity = readRows<Record<string, string>>(simulation, 'pragma integrity_check')[0]
  if (Object.values(integrity ?? {})[0] !== 'ok')
    onViolation({ rule: 'the database is intact', detail: JSON.stringify(integrity) })
}

/** The log of the server has no phone number, no code and no secret. */
function checkLog(simulation: Simulation): void {
  const { logLines, shop, model, onViolation } = simulation
  const text = logLines.join('')
  const secrets = [
    ...shop.apps.flatMap(({ headers }) => [headers['x-client-secret'], headers['x-api-key']]),
    shop.token['authorization']?.slice('Bearer '.length),
    ...new Set(model.requests.map(({ phone }) => phone)),
  ]
  for (const secret of secrets)
    if (secret !== undefined && text.includes(secret))
      onViolation({ rule: 'no secret in the log', detail: secret })
}

function readRows<T>(simulation: Simulation, text: string): T[] {
  const connection = new Database(join(simulation.folder(), 'otpd.db'), { readonly: true })
  try {
    return connection.prepare<T, []>(text).all()
  } finally {
    connection.close()
  }
}
