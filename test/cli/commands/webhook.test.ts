import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createCliFixture, pageResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

const id = 'whk_01arz3ndektsv4rrffq69g5fav'
const deliveryId = 'dlv_01arz3ndektsv4rrffq69g5fav'
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
const lastBody = () => JSON.parse(cli.server.requests.at(-1)?.body ?? 'null')

describe('webhook create', () => {
  const create = (events: string) => ['webhook', 'create', '--app', appId, '--url', url, '--events', events]

  test('sends the given fields, and says how to test the endpoint', async () => {
    cli.respond = () => Response.json({ data: endpoint }, { status: 201 })
    const result = await cli.home.otpd(create('otp.verified, otp.failed,otp.failed'))
    expect(result.exitCode).toBe(0)
    expect(lastBody()).toEqual({ appId, url, events: ['otp.verified', 'otp.failed'] })
    expect(result.stdout).toContain(`✓ Webhook created\n${url}\n`)
    expect(result.stderr).toContain(`Next: otpd webhook test ${id}`)
  })

  test('with an unknown event type lists the known ones, and makes no call', async () => {
    const result = await cli.home.otpd(create('otp.verified,otp.nothing'))
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(result.stderr).toContain('otp.sent, otp.delivered')
    expect(cli.server.requests).toEqual([])
  })
})

describe('an endpoint', () => {
  const respond = (endpoints: object[]) => {
    cli.respond = ({ path }) => {
      if (path.startsWith('/v1/applications')) return pageResponse({ id: appId, name: 'web' })
      if (path.startsWith('/v1/webhooks?')) return pageResponse(...endpoints)
      if (path.includes('status=failed')) return pageResponse({ ...delivery, status: 'failed' })
      if (/\/deliveries(\?|$)/.test(path)) return pageResponse(delivery)
      if (path.endsWith('/recover')) return Response.json({ data: { recovered: 2 } })
      return Response.json({ data: path.includes('/deliveries/') ? { ...delivery, history: [] } : endpoint })
    }
  }
  const paths = () => cli.server.requests.map(({ path }) => path)

  test.each([['https://shop.example.com/hooks'], ['web'], [appId], []])(
    'is found by %s',
    async (...words) => {
      respond([endpoint])
      expect((await cli.home.otpd(['webhook', 'deliveries', ...words])).exitCode).toBe(0)
      expect(paths().at(-1)).toBe(`/v1/webhooks/${id}/deliveries`)
    },
  )

  test('that is the only one needs no name, and its newest failed delivery is delivered again', async () => {
    respond([endpoint])
    expect((await cli.home.otpd(['webhook', 'redeliver'])).exitCode).toBe(0)
    expect(paths().at(-1)).toBe(`/v1/webhooks/${id}/deliveries/${deliveryId}/redeliver`)
    expect((await cli.home.otpd(['webhook', 'redeliver', deliveryId])).exitCode).toBe(0)
    expect((await cli.home.otpd(['webhook', 'recover'])).stdout).toContain('2')
    expect((await cli.home.otpd(['webhook', 'enable'])).exitCode).toBe(0)
  })

  test('of several must be named, and the error lists them', async () => {
    const other = { ...endpoint, id: 'whk_01arz3ndektsv4rrffq69g5faw', url: 'https://other.example.com/' }
    respond([endpoint, other])
    const result = await cli.home.otpd(['webhook', 'recover'])
    expect(result.exitCode).toBe(2)
    expect(result.stderr).toContain(`${other.id}  ${other.url}`)
  })
})

describe('webhook --header', () => {
  const update = (...headers: string[]) =>
    cli.home.otpd(['webhook', 'update', id, ...headers.flatMap((header) => ['--header', header])])

  test('sets headers from the argument or a file, and removes them', async () => {
    cli.respond = () => Response.json({ data: endpoint })
    await Bun.write(join(cli.home.directory, 'token'), 'Bearer s3cret\n')
    expect((await update('authorization: @token', 'x-tenant:  a:b ', 'x-old:')).exitCode).toBe(0)
    expect(lastBody()).toEqual({
      headers: { authorization: 'Bearer s3cret', 'x-tenant': 'a:b', 'x-old': null },
    })
  })

  test.each(['no colon', 'authorization: @none'])('refuses %p before any call', async (header) => {
    expect((await update(header)).exitCode).toBe(2)
    expect(cli.server.requests).toEqual([])
  })
})

describe('webhook list', () => {
  test('shows which endpoints fail and which were disabled', async () => {
    const failing = { ...endpoint, failingSince: at, events: ['*'] }
    const disabledEndpoint = { ...endpoint, status: 'disabled', disabledReason: 'gone' }
    cli.respond = () => pageResponse(endpoint, failing, disabledEndpoint)
    const { stdout } = await cli.home.otpd(['webhooks', 'ls', '--app', appId])
    expect(cli.server.requests[0]?.path).toBe(`/v1/webhooks?appId=${appId}`)
    expect(stdout).toMatch(/\/hooks +● enabled .* otp\.verified +whk_\w{26}\n/)
    expect(stdout).toMatch(/\/hooks +▲ failing .* all +whk_/)
    expect(stdout).toContain('○ disabled (gone)')
  })

  test('without endpoints says what to do', async () => {
    cli.respond = () => pageResponse()
    expect((await cli.home.otpd(['webhook', 'list'])).stdout).toStartWith(
      'No webhooks yet. Create one:\n  otpd webhook create',
    )
  })
})

describe('webhook', () => {
  test('get shows the names of headers, and never their values', async () => {
    cli.respond = ({ path }) =>
      Response.json({ data: path.startsWith('/v1/applications') ? { name: 'web' } : endpoint })
    const { stdout } = await cli.home.otpd(['webhook', 'get', id])
    expect(stdout).toContain('authorization: ****')
    expect(stdout).toMatch(/Application +web \(app_\w+\)\n/)
  })

  test('update sends the given fields', async () => {
    cli.respond = () => Response.json({ data: endpoint })
    await cli.home.otpd(['webhook', 'update', id, '--events', '*', '--description', ''])
    expect(lastBody()).toEqual({ events: ['*'], description: null })
  })

  test.each([
    ['enable', 'enabled'],
    ['disable', 'disabled'],
  ])('%s makes it %s', async (verb, status) => {
    cli.respond = () => Response.json({ data: { ...endpoint, status } })
    expect((await cli.home.otpd(['webhook', verb, id])).stdout).toBe(`✓ ${url} is ${status}\n`)
    expect(lastBody()).toEqual({ status })
  })

  test('delete requires typing the host', async () => {
    cli.respond = ({ method }) => Response.json({ data: method === 'GET' ? endpoint : { id, deleted: true } })
    const result = await cli.home.otpd(['webhook', 'rm', id], { answers: ['shop.example.com'] })
    expect(result).toMatchObject({ exitCode: 0, questions: ['Type shop.example.com to confirm: '] })
  })
})

describe('webhook test', () => {
  const respondToTest = (result: unknown) => {
    cli.respond = ({ method }) => Response.json({ data: method === 'GET' ? endpoint : result })
  }

  test('is 0 when the event was delivered', async () => {
    respondToTest({ delivered: true, statusCode: 204 })
    expect(await cli.home.otpd(['webhook', 'test', id])).toMatchObject({
      exitCode: 0,
      stdout: `→ POST ${url}  otp.verified\n← 204  delivered\n`,
    })
  })

  test.each([
    [{ delivered: false, statusCode: 503 }, '← 503  not delivered\n  Only 200 to 299'],
    [{ delivered: false, statusCode: 302 }, '← 302  not delivered\n  The endpoint sent a redirect'],
    [
      { delivered: false, statusCode: 0, error: 'timeout' },
      '← no response  not delivered\n  The endpoint did not respond',
    ],
  ])('is 8 where it was not: %o', async (result, text) => {
    respondToTest(result)
    const runResult = await cli.home.otpd(['webhook', 'test', id])
    expect(runResult.exitCode).toBe(8)
    expect(runResult.stdout).toContain(text)
    const json = await cli.home.otpd(['webhook', 'test', id, '--json'])
    expect(json).toMatchObject({ exitCode: 8, stdout: `${JSON.stringify({ data: result })}\n`, stderr: '' })
  })
})

describe('webhook deliveries', () => {
  test('are listed with their results', async () => {
    cli.respond = () => pageResponse(delivery)
    const { stdout } = await cli.home.otpd(['webhook', 'deliveries', id, '--status', 'pending'])
    expect(cli.server.requests[0]?.path).toBe(`/v1/webhooks/${id}/deliveries?status=pending`)
    expect(stdout).toMatch(/^otp\.sent +… pending +503 +2 .* dlv_\w+$/m)
  })

  test('show each attempt of one delivery, and the time of the next', async () => {
    const attempts = [
      { at, statusCode: 503, error: 'bad_status', durationMs: 1200, body: 'upstream\n\u001b[2Jerror' },
      { at, statusCode: null, error: 'blocked_address', durationMs: 3, body: null },
    ]
    const request = {
      url,
      headers: { 'webhook-id': delivery.eventId, authorization: '****' },
      body: '{"type":"otp.sent","data":{"phone":"+14155550100","text":"\\u001b[2J"}}',
    }
    cli.respond = () => Response.json({ data: { ...delivery, attempts, request } })
    const result = await cli.home.otpd(['webhook', 'deliveries', id, deliveryId], { columns: 100 })
    const stdout = Bun.stripANSI(result.stdout)
    expect(stdout).toMatch(/Next attempt +in 5 min\n/)
    expect(stdout).toMatch(/1 h ago +503 +1 s +upstream �\[2Jerror\n/)
    expect(stdout).toMatch(/1 h ago +blocked address +3 ms\n/)
    expect(stdout).toContain(
      `REQUEST\nPOST ${url}\nwebhook-id: ${delivery.eventId}\nauthorization: ****\n\n{\n`,
    )
    expect(stdout).toContain('    "phone": "+14155550100",\n    "text": "\\u001b[2J"\n')
    cli.respond = () =>
      Response.json({ data: { ...delivery, attempts, request: { ...request, body: null } } })
    const purged = await cli.home.otpd(['webhook', 'deliveries', id, deliveryId])
    expect(purged.stdout).toEndWith('\n\nThe body was deleted, or cannot be decrypted.\n')
    cli.respond = () => Response.json({ data: { ...delivery, attempts, request: null } })
    expect((await cli.home.otpd(['webhook', 'deliveries', id, deliveryId])).stdout).not.toContain('REQUEST')
  })

  test('are sent again', async () => {
    cli.respond = () => Response.json({ data: { ...delivery, attempts: [] } })
    const result = await cli.home.otpd(['webhook', 'redeliver', id, deliveryId])
    expect(result).toMatchObject({ exitCode: 0, stdout: '✓ otp.sent is queued for delivery again\n' })
    expect(cli.server.requests[0]?.path).toBe(`/v1/webhooks/${id}/deliveries/${deliveryId}/redeliver`)
  })
})
