import { afterAll, expect, test } from 'bun:test'
import { rowsMax, tailLog, type LogTail } from '../../../cli/console/log-tail.ts'
import { createContext } from '../../../cli/context.ts'
import { createOutput } from '../../../cli/terminal/output.ts'
import { processIo } from '../../../cli/terminal/terminal.ts'
import { createScriptedServer, page, refusal } from '../harness.ts'

const entryOf = (number: number) => ({
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
const eventOf = (number: number) => `id: ${entryOf(number).id}\ndata: ${JSON.stringify(entryOf(number))}\n\n`

/** Resolved once the first entry was drawn; the stream of `slow` goes on then. */
const goOn = Promise.withResolvers<void>()

const finished = Promise.withResolvers<void>()
afterAll(() => finished.resolve())

async function* slowly() {
  yield ': connected\n\n'
  await goOn.promise
  yield eventOf(2)
  await finished.promise
}

let isRefused = true
const headers = { 'content-type': 'text/event-stream' }
const server = createScriptedServer(({ path }) => {
  if (path.includes('appId=refused') && isRefused)
    return refusal(404, 'NOT_FOUND', 'There is no such application.')
  if (!path.startsWith('/v1/logs/stream')) return page(entryOf(1))
  if (path.includes('appId=slow')) return new Response(slowly(), { headers })
  return new Response(Array.from({ length: count }, (_, index) => eventOf(index + 2)).join(''), { headers })
})
afterAll(() => server.stop())

function needs() {
  const io = { ...processIo(), sleep: async () => {}, env: { OTPD_TOKEN: 'token', OTPD_SERVER: server.url } }
  const context = createContext(io, {}, createOutput(io, {}))
  const connection = context.connect()
  return { api: connection.api, context, connection, now: io.now }
}

test('what arrives at once is drawn at once, and only the newest are kept', async () => {
  const abort = new AbortController()
  const drawn: LogTail[] = []
  await tailLog(needs(), {}, abort.signal, (tail) => {
    drawn.push(tail)
    if (tail.state === 'lost') abort.abort()
  })
  expect(drawn.length).toBeLessThan(count / 10)
  const { rows = [] } = drawn.at(-1) ?? {}
  expect(rows).toHaveLength(rowsMax)
  expect(rows.at(-1)).toMatchObject({ kind: 'gap' })
  expect(rows.at(-2)).toMatchObject({ kind: 'entry', id: entryOf(count + 1).id })
})

test('what was drawn is never changed afterwards', async () => {
  const abort = new AbortController()
  const lengths: number[] = []
  const drawn: LogTail[] = []
  const search = { appId: 'slow' }
  await tailLog(needs(), search, abort.signal, (tail) => {
    drawn.push(tail)
    lengths.push(tail.rows.length)
    if (tail.rows.length === 1) goOn.resolve()
    if (tail.rows.length > 1) abort.abort()
  })
  expect(lengths.at(-1)).toBe(2)
  expect(drawn.map(({ rows }) => rows.length)).toEqual(lengths)
})

test('what happened in the minute before it was opened counts as of that minute', async () => {
  const abort = new AbortController()
  const drawn: LogTail[] = []
  const at = Date.parse(entryOf(1).at)
  await tailLog({ ...needs(), now: () => at + 30_000 }, { appId: 'slow' }, abort.signal, (tail) => {
    drawn.push(tail)
    abort.abort()
  })
  expect(drawn[0]?.arrivals).toContain(at)
})

test('a refusal is drawn, and what is allowed again comes by itself', async () => {
  const abort = new AbortController()
  const drawn: LogTail[] = []
  await tailLog(needs(), { appId: 'refused' }, abort.signal, (tail) => {
    drawn.push(tail)
    if (tail.state === 'refused') isRefused = false
    else abort.abort()
  })
  expect(drawn[0]).toMatchObject({ state: 'refused', error: { code: 'NOT_FOUND' }, rows: [] })
  expect(drawn.at(-1)).toMatchObject({ error: null })
  expect(drawn.at(-1)?.rows).toHaveLength(rowsMax)
})
