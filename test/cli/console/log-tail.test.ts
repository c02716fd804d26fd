import { afterAll, expect, test } from 'bun:test'
import { rowsMax, tailLog, type LogTail } from '../../../cli/console/log-tail.ts'
import { createContext } from '../../../cli/context.ts'
import { createOutput } from '../../../cli/output.ts'
import { processIo } from '../../../cli/terminal.ts'
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
const server = createScriptedServer(({ path }) => {
  if (path.includes('appId=refused')) return refusal(404, 'NOT_FOUND', 'There is no such application.')
  if (!path.startsWith('/v1/logs/stream')) return page(entryOf(1))
  const events = Array.from({ length: count }, (_, index) => entryOf(index + 2))
  const text = events.map((entry) => `id: ${entry.id}\ndata: ${JSON.stringify(entry)}\n\n`).join('')
  return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
})
afterAll(() => server.stop())

function needs() {
  const io = { ...processIo(), env: { OTPD_TOKEN: 'token', OTPD_SERVER: server.url } }
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
  const drawn: { tail: LogTail; length: number }[] = []
  await tailLog(needs(), {}, abort.signal, (tail) => {
    drawn.push({ tail, length: tail.rows.length })
    if (tail.state === 'lost') abort.abort()
  })
  expect(drawn.map(({ tail }) => tail.rows.length)).toEqual(drawn.map(({ length }) => length))
})

test('a refusal ends it, and is drawn', async () => {
  const drawn: LogTail[] = []
  const drawing = Promise.withResolvers<void>()
  const search = { appId: 'refused' }
  await tailLog(needs(), search, new AbortController().signal, (tail) => {
    drawn.push(tail)
    drawing.resolve()
  })
  await drawing.promise
  expect(drawn.at(-1)).toMatchObject({ state: 'refused', error: { code: 'NOT_FOUND' } })
})
