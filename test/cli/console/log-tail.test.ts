import { afterAll, expect, test } from 'bun:test'
import { rowsMax, tailLog, type LogTail } from '../../../cli/console/log-tail.ts'
import { createContext } from '../../../cli/context.ts'
import { createOutput } from '../../../cli/terminal/output.ts'
import { processIo } from '../../../cli/terminal/terminal.ts'
import { createScriptedServer, pageResponse, errorResponse } from '../cli-fixture.ts'

const createEntry = (number: number) => ({
  id: `evt_${String(number).padStart(26, '0')}`,
  type: 'otp.sent',
  appId: null,
  requestId: null,
  phone: '+14155550132',
  status: 'pending',
  detail: null,
  at: '2026-11-20T12:00:00.000Z',
})

const count = 5000
const formatEvent = (number: number) =>
  `id: ${createEntry(number).id}\ndata: ${JSON.stringify(createEntry(number))}\n\n`

/** Resolved once the first entry was drawn; then the stream of `slow` continues. */
const firstDrawn = Promise.withResolvers<void>()

const finished = Promise.withResolvers<void>()
afterAll(() => finished.resolve())

async function* streamSlowly() {
  yield ': connected\n\n'
  await firstDrawn.promise
  yield formatEvent(2)
  await finished.promise
}

let isRefused = true
const headers = { 'content-type': 'text/event-stream' }
const server = createScriptedServer(({ path }) => {
  if (path.includes('appId=refused') && isRefused)
    return errorResponse(404, 'NOT_FOUND', 'There is no such application.')
  if (!path.startsWith('/v1/logs/stream')) return pageResponse(createEntry(1))
  if (path.includes('appId=slow')) return new Response(streamSlowly(), { headers })
  return new Response(Array.from({ length: count }, (_, index) => formatEvent(index + 2)).join(''), {
    headers,
  })
})
afterAll(() => server.stop())

function tailOptions() {
  const io = { ...processIo(), sleep: async () => {}, env: { OTPD_TOKEN: 'token', OTPD_SERVER: server.url } }
  const context = createContext(io, {}, createOutput(io, {}))
  const connection = context.connect()
  return { api: connection.api, context, connection, now: io.now }
}

test('a burst of entries is drawn together, and only the newest are kept', async () => {
  const abort = new AbortController()
  const updates: LogTail[] = []
  await tailLog(tailOptions(), { limit: 200 }, abort.signal, (tail) => {
    updates.push(tail)
    if (tail.state === 'disconnected') abort.abort()
  })
  expect(updates.length).toBeLessThan(count / 10)
  const { rows = [] } = updates.at(-1) ?? {}
  expect(rows).toHaveLength(rowsMax)
  expect(rows.at(-1)).toMatchObject({ kind: 'gap' })
  expect(rows.at(-2)).toMatchObject({ kind: 'entry', id: createEntry(count + 1).id })
})

test('a drawn tail is never changed afterwards', async () => {
  const abort = new AbortController()
  const lengths: number[] = []
  const updates: LogTail[] = []
  const search = { appId: 'slow', limit: 200 }
  await tailLog(tailOptions(), search, abort.signal, (tail) => {
    updates.push(tail)
    lengths.push(tail.rows.length)
    if (tail.rows.length === 1) firstDrawn.resolve()
    if (tail.rows.length > 1) abort.abort()
  })
  expect(lengths.at(-1)).toBe(2)
  expect(updates.map(({ rows }) => rows.length)).toEqual(lengths)
})

test('the rate per minute includes events from before the log was opened', async () => {
  const abort = new AbortController()
  const updates: LogTail[] = []
  const at = Date.parse(createEntry(1).at)
  await tailLog(
    { ...tailOptions(), now: () => at + 30_000 },
    { appId: 'slow', limit: 200 },
    abort.signal,
    (tail) => {
      updates.push(tail)
      abort.abort()
    },
  )
  expect(updates[0]?.arrivals).toContain(at)
})

test('a refusal is drawn, and the log continues by itself once it is allowed again', async () => {
  const abort = new AbortController()
  const updates: LogTail[] = []
  await tailLog(tailOptions(), { appId: 'refused', limit: 200 }, abort.signal, (tail) => {
    updates.push(tail)
    if (tail.state === 'refused') isRefused = false
    else if (tail.rows.length === rowsMax) abort.abort()
  })
  expect(updates[0]).toMatchObject({ state: 'refused', error: { code: 'NOT_FOUND' }, rows: [] })
  expect(updates.at(-1)).toMatchObject({ error: null })
  expect(updates.at(-1)?.rows).toHaveLength(rowsMax)
})
