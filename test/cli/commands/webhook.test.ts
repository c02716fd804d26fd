import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createConversation, page } from '../harness.ts'

let talk: ReturnType<typeof createConversation>

beforeEach(() => {
  talk = createConversation()
})

afterEach(() => talk.end())

const id = 'whk_01arz3ndektsv4rrffq69g5fav'
const deliveryId = 'wdl_01arz3ndektsv4rrffq69g5fav'
const appId = 'app_01arz3ndektsv4rrffq69g5fav'
const url = 'https://shop.example.com/hooks'
const at = '2026-11-20T11:00:00.000Z'
const endpoint = {
  id,
  appId,
  url,
  events: ['otp.verified'],
  status: 'enabled',
  description: null,
  headers: { authorization: '****' },
  disabledReason: null,
  failingSince: null,
  lastDeliveryAt: null,
  createdAt: at,
  updatedAt: at,
}
const delivery = {
  id: deliveryId,
  eventId: 'evt_01arz3ndektsv4rrffq69g5fav',
  type: 'otp.sent',
  status: 'pending',
  lastStatusCode: 503,
  lastError: 'bad_status',
  nextAttemptAt: '2026-11-20T12:05:00.000Z',
  createdAt: at,
  deliveredAt: null,
  attempts: 2,
}
const lastBody = () => JSON.parse(talk.server.asked.at(-1)?.body ?? 'null')

describe('webhook create', () => {
  const create = (events: string) => ['webhook', 'create', '--app', appId, '--url', url, '--events', events]

  test('sends what was named, and says how to try it', async () => {
    talk.answer = () => Response.json({ data: endpoint }, { status: 201 })
    const ran = await talk.home.otpd(create('otp.verified, otp.failed,otp.failed'))
    expect(ran.exitCode).toBe(0)
    expect(lastBody()).toEqual({ appId, url, events: ['otp.verified', 'otp.failed'] })
    expect(ran.stdout).toContain(`✓ Webhook created\n${url}\n`)
    expect(ran.stderr).toContain(`Next: otpd webhook test ${id}`)
  })

  test('of an event that there is not names those that there are, and asks nobody', async () => {
    const ran = await talk.home.otpd(create('otp.verified,otp.nothing'))
    expect(ran).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ran.stderr).toContain('otp.sent, otp.delivered')
    expect(talk.server.asked).toEqual([])
  })
})

describe('webhook list', () => {
  test('shows which fail and which were given up', async () => {
    const failing = { ...endpoint, failingSince: at, events: ['*'] }
    const gone = { ...endpoint, status: 'disabled', disabledReason: 'gone' }
    talk.answer = () => page(endpoint, failing, gone)
    const { stdout } = await talk.home.otpd(['webhooks', 'ls', '--app', appId])
    expect(talk.server.asked[0]?.path).toBe(`/v1/webhooks?appId=${appId}`)
    expect(stdout).toMatch(/● enabled .*hooks {2}otp\.verified\n/)
    expect(stdout).toMatch(/▲ failing .*hooks {2}all\n/)
    expect(stdout).toContain('○ disabled (gone)')
  })

  test('of nothing says what to do', async () => {
    talk.answer = () => page()
    expect((await talk.home.otpd(['webhook', 'list'])).stdout).toStartWith(
      'No webhooks yet. Create one:\n  otpd webhook create',
    )
  })
})

describe('webhook', () => {
  test('get shows that there are headers, and never what they hold', async () => {
    talk.answer = () => Response.json({ data: endpoint })
    expect((await talk.home.otpd(['webhook', 'get', id])).stdout).toContain('authorization: ****')
  })

  test('update sends what was named', async () => {
    talk.answer = () => Response.json({ data: endpoint })
    await talk.home.otpd(['webhook', 'update', id, '--events', '*', '--description', ''])
    expect(lastBody()).toEqual({ events: ['*'], description: null })
  })

  test.each([
    ['enable', 'enabled'],
    ['disable', 'disabled'],
  ])('%s makes it %s', async (verb, status) => {
    talk.answer = () => Response.json({ data: { ...endpoint, status } })
    expect((await talk.home.otpd(['webhook', verb, id])).stdout).toBe(`✓ ${url} is ${status}\n`)
    expect(lastBody()).toEqual({ status })
  })

  test('delete wants the host typed', async () => {
    talk.answer = ({ method }) => Response.json({ data: method === 'GET' ? endpoint : { id, deleted: true } })
    const ran = await talk.home.otpd(['webhook', 'rm', id], { answers: ['shop.example.com'] })
    expect(ran).toMatchObject({ exitCode: 0, questions: ['Type shop.example.com to confirm: '] })
  })
})

describe('webhook test', () => {
  const answering = (result: unknown) => {
    talk.answer = ({ method }) => Response.json({ data: method === 'GET' ? endpoint : result })
  }

  test('is 0 where it was taken', async () => {
    answering({ delivered: true, statusCode: 204 })
    expect(await talk.home.otpd(['webhook', 'test', id])).toMatchObject({
      exitCode: 0,
      stdout: `→ POST ${url}  otp.verified\n← 204  delivered\n`,
    })
  })

  test.each([
    [{ delivered: false, statusCode: 503 }, '← 503  not delivered\n  Only 200 to 299'],
    [{ delivered: false, statusCode: 302 }, '← 302  not delivered\n  It answered with a redirect'],
    [{ delivered: false, statusCode: 0, error: 'timeout' }, '← no answer  not delivered\n  No answer came'],
  ])('is 8 where it was not: %o', async (result, text) => {
    answering(result)
    const ran = await talk.home.otpd(['webhook', 'test', id])
    expect(ran.exitCode).toBe(8)
    expect(ran.stdout).toContain(text)
    const json = await talk.home.otpd(['webhook', 'test', id, '--json'])
    expect(json).toMatchObject({ exitCode: 8, stdout: `${JSON.stringify({ data: result })}\n`, stderr: '' })
  })
})

describe('webhook deliveries', () => {
  test('are listed with what came of them', async () => {
    talk.answer = () => page(delivery)
    const { stdout } = await talk.home.otpd(['webhook', 'deliveries', id, '--status', 'pending'])
    expect(talk.server.asked[0]?.path).toBe(`/v1/webhooks/${id}/deliveries?status=pending`)
    expect(stdout).toMatch(/wdl_\w+ {2}otp\.sent +… pending +2 +503 /)
  })

  test('show each attempt of one, and when the next is', async () => {
    const attempts = [
      { at, statusCode: 503, error: 'bad_status', durationMs: 1200, body: 'upstream\n\u001b[2Jerror' },
      { at, statusCode: null, error: 'blocked_address', durationMs: 3, body: null },
    ]
    talk.answer = () => Response.json({ data: { ...delivery, attempts } })
    const ran = await talk.home.otpd(['webhook', 'deliveries', id, deliveryId], { columns: 100 })
    const stdout = Bun.stripANSI(ran.stdout)
    expect(stdout).toMatch(/Next attempt +in 5 min\n/)
    expect(stdout).toMatch(/1 h ago +503 +1 s +upstream �\[2Jerror\n/)
    expect(stdout).toMatch(/1 h ago +blocked address +3 ms\n/)
  })

  test('are sent again', async () => {
    talk.answer = () => Response.json({ data: { ...delivery, attempts: [] } })
    const ran = await talk.home.otpd(['webhook', 'redeliver', id, deliveryId])
    expect(ran).toMatchObject({ exitCode: 0, stdout: '✓ otp.sent is on its way again\n' })
    expect(talk.server.asked[0]?.path).toBe(`/v1/webhooks/${id}/deliveries/${deliveryId}/redeliver`)
  })
})
