import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { startFaultyServer } from '../helpers/provider-faults.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'
import { createFailoverFixture, type FailoverFixture } from './failover-fixture.ts'
import { authToken, buildReceipt, findLogLines } from './gateway.ts'

/** The compiled server against local servers that misbehave as providers do, with the real timeouts. */

let fixture: FailoverFixture
let otherHeaders: Record<string, string>

beforeAll(async () => {
  fixture = createFailoverFixture()
  fixture.addFault('number', (gateway) => gateway.refuseAll(400, 21211))
  fixture.addFault('account', (gateway) => gateway.refuseAll(401, 20003))
  fixture.addFault('hangs', (gateway) =>
    gateway.setHandler((received) => {
      gateway.acceptMessage(received)
      return new Promise(() => {})
    }),
  )
  fixture.addFault('slow', (gateway) =>
    gateway.setHandler(async (received) => {
      await Bun.sleep(2_000)
      return gateway.createdResponse(gateway.acceptMessage(received))
    }),
  )
  fixture.addFault('fails', (gateway) => gateway.refuseAll(500, 20500))
  fixture.addFault('busy', (gateway) => gateway.refuseAll(429, 20429, { 'retry-after': '300' }))
  const unreadServer = await startFaultyServer((socket) => socket.destroy())
  const cutResponseServer = await startFaultyServer((socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 201 Created\r\ncontent-length: 200\r\n\r\n{"sid')),
  )
  const resetServer = await startFaultyServer((socket) => socket.once('data', () => socket.resetAndDestroy()))
  for (const { stop } of [unreadServer, cutResponseServer, resetServer]) fixture.onDispose(stop)
  fixture.faults.set('unread', { url: unreadServer.url, messages: [] })
  fixture.faults.set('silent', { url: resetServer.url, messages: [] })
  fixture.faults.set('halfway', { url: cutResponseServer.url, messages: [] })
  fixture.faults.set('nowhere', { url: 'https://provider.invalid', messages: [] })
  if (hasOpenssl) {
    const { key, cert } = makeCertificate('other.example.com')
    const secure = createServer({ key, cert }, (_, response) => response.end())
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve))
    fixture.onDispose(() => secure.close())
    writeFileSync(join(fixture.home, 'ca.pem'), cert)
    const address = secure.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    fixture.faults.set('impostor', { url: `https://localhost:${port}`, messages: [] })
  }
  fixture.addFault('early', (gateway) =>
    gateway.setHandler(async (received) => {
      const text = gateway.acceptMessage(received)
      const { url, ...receipt } = buildReceipt(text, 'delivered')
      expect((await fetch(url, receipt)).status).toBe(200)
      return gateway.createdResponse(text)
    }),
  )
  fixture.writeConfig()
  await fixture.setUp(hasOpenssl ? { NODE_EXTRA_CA_CERTS: join(fixture.home, 'ca.pem') } : {})
  otherHeaders = await fixture.createApplication('other')
}, 300_000)

afterAll(() => fixture.dispose())

/**
 * Sends through a faulty provider; returns the response, the messages that the phone got from each provider,
 * and the log.
 */
async function send(name: string) {
  const to = fixture.nextPhone(name)
  const startedAt = performance.now()
  const { status, data, error } = await fixture.call<{ requestId: string }>('POST', '/v1/otp/send', {
    phone: to,
  })
  const tookMs = performance.now() - startedAt
  const requestId = status === 201 ? data.requestId : error.metadata.requestId
  const otpRequest = await fixture.call<{ status: string; deliveryStatus: string; provider: string | null }>(
    'GET',
    `/v1/otp/${requestId}`,
  )
  await fixture.server().waitForLog(otpRequest.traceId)
  const faultyMessages = fixture.faults.get(name)?.messages.filter((text) => text.to === to) ?? []
  const spareMessages = fixture.spare.messages.filter((text) => text.to === to)
  return {
    to,
    requestId,
    status,
    reason: error?.reason,
    tookMs,
    otpRequest: otpRequest.data,
    faultyMessages,
    spareMessages,
    log: findLogLines(fixture.server().log(), requestId),
  }
}

describe('a provider that', () => {
  test('refuses the number: the caller gets an error, and the phone gets nothing', async () => {
    const { status, reason, otpRequest, spareMessages, log } = await send('number')
    expect([status, reason, otpRequest.status, otpRequest.deliveryStatus]).toEqual([
      502,
      'INVALID_NUMBER',
      'failed',
      'undelivered',
    ])
    expect(spareMessages).toEqual([])
    expect(log).toEqual(['message refused number invalid_number 21211'])
  })

  test.each([
    ['account', 'auth_failed 20003'],
    ['fails', 'provider_down 20500'],
    ['busy', 'throttled 20429'],
    // EAI_AGAIN on machines without a resolver.
    ['nowhere', 'provider_down (ENOTFOUND|EAI_AGAIN)'],
    ...(hasOpenssl ? [['impostor', 'provider_down ERR_TLS_CERT_ALTNAME_INVALID'] as const] : []),
  ])('refuses the message (%s): the next one sends it at once', async (name, failure) => {
    const { status, requestId, otpRequest, spareMessages, log } = await send(name)
    expect([status, otpRequest.deliveryStatus, otpRequest.provider]).toEqual([201, 'sent', 'spare'])
    expect(spareMessages).toHaveLength(1)
    const refused = expect.stringMatching(new RegExp(`^message refused ${name} ${failure}$`))
    expect(log).toEqual([refused, 'message accepted spare'])
    expect((await fixture.verify(requestId, spareMessages[0])).status).toBe(200)
  })

  test('throttles: it is not tried again until the time it asked for', async () => {
    await send('busy')
    const { spareMessages, log } = await send('busy')
    expect([spareMessages.length, log]).toEqual([1, ['message accepted spare']])
  })

  test('responds slowly: the call waits for it', async () => {
    const { status, otpRequest, tookMs, faultyMessages, spareMessages, log } = await send('slow')
    expect([status, otpRequest.deliveryStatus, faultyMessages.length, spareMessages.length]).toEqual([
      201,
      'sent',
      1,
      0,
    ])
    expect(tookMs).toBeGreaterThan(1_900)
    expect(log).toEqual(['message accepted slow'])
  })

  test('hangs delays its callers by eight seconds but no other application, and no other provider gets the message', async () => {
    let phones = 0
    const other = async () => {
      const phone = `+33612${String(++phones).padStart(6, '0')}`
      const { status } = await fixture.call('POST', '/v1/otp/send', { phone }, otherHeaders)
      expect(status).toBe(201)
    }
    let answered = 0
    const hanging = Array.from({ length: 50 }, () => send('hangs').finally(() => answered++))
    while ((fixture.faults.get('hangs')?.messages.length ?? 0) < 50) await other()
    for (let count = 0; count < 20; count++) await other()
    // All sends of the other application have finished, while all of these are still waiting.
    expect(answered).toBe(0)
    for (const {
      status,
      requestId,
      tookMs,
      otpRequest,
      faultyMessages,
      spareMessages,
      log,
    } of await Promise.all(hanging)) {
      expect(tookMs).toBeGreaterThan(7_900)
      expect([status, otpRequest.status, otpRequest.deliveryStatus]).toEqual([201, 'pending', 'unknown'])
      expect([faultyMessages.length, spareMessages.length]).toEqual([1, 0])
      expect(log).toEqual(['message uncertain hangs uncertain ABORTED'])
      expect((await fixture.verify(requestId, faultyMessages[0])).status).toBe(200)
    }
  }, 300_000)

  test.each([
    ['unread', /^message uncertain unread uncertain \w+$/],
    ['silent', /^message uncertain silent uncertain ECONNRESET$/],
    ['halfway', /^message uncertain halfway uncertain \w+$/],
  ])(
    'closes the connection (%s) may have accepted the message: no other provider gets it',
    async (name, logPattern) => {
      const { status, otpRequest, spareMessages, log } = await send(name)
      expect([status, otpRequest.status, otpRequest.deliveryStatus]).toEqual([201, 'pending', 'unknown'])
      expect(spareMessages).toEqual([])
      expect(log).toEqual([expect.stringMatching(logPattern)])
    },
  )

  test('sends the receipt before its response: the receipt counts', async () => {
    const { status, otpRequest, faultyMessages, spareMessages } = await send('early')
    expect([status, otpRequest.deliveryStatus, otpRequest.provider]).toEqual([201, 'delivered', 'early'])
    expect([faultyMessages.length, spareMessages.length]).toEqual([1, 0])
  })
})

describe('a message that no provider accepts', () => {
  test('is sent as soon as one accepts it, with the same code', async () => {
    fixture.spare.refuseAll(503, 20503)
    const { status, requestId, otpRequest, to } = await send('fails')
    expect([status, otpRequest.status, otpRequest.deliveryStatus, otpRequest.provider]).toEqual([
      201,
      'pending',
      'queued',
      null,
    ])
    fixture.spare.acceptAll()
    await fixture.server().waitForLog(`"msg":"message accepted","requestId":"${requestId}"`)
    const received = fixture.spare.messages.filter((text) => text.to === to)
    expect(received).toHaveLength(1)
    const log = findLogLines(fixture.server().log(), requestId)
    // On a busy machine there may be more attempts in between.
    expect([...log.slice(0, 3), log.at(-1)]).toEqual([
      'message refused fails provider_down 20500',
      'message refused spare provider_down 20503',
      'message refused fails provider_down 20500',
      'message accepted spare',
    ])
    expect((await fixture.verify(requestId, received[0])).status).toBe(200)
  }, 300_000)
})

describe('the configuration', () => {
  test('is reloaded on SIGHUP, and kept if the new one is invalid', async () => {
    await fixture.reload()
    const good = await Bun.file(fixture.configFile).text()
    writeFileSync(fixture.configFile, `${good}\n[[routes]]\nchannel = "pigeon"\nproviders = ["missing"]\n`)
    process.kill(fixture.server().pid, 'SIGHUP')
    await fixture.server().waitForLog('There is no provider missing.')
    await fixture.server().waitForLog('The route has no valid channel.')
    expect((await send('slow')).otpRequest.provider).toBe('slow')
    writeFileSync(fixture.configFile, good)
  })

  test('is listed, and `provider test` sends a real message', async () => {
    const run = { env: fixture.env() }
    const listed = await fixture.server().otpd(['provider', 'list', '--json'], run)
    expect(JSON.parse(listed.stdout).data).toContainEqual(
      expect.objectContaining({ name: 'spare', kind: 'twilio', channels: ['sms'] }),
    )
    const busy = expect.objectContaining({
      name: 'busy',
      resting: expect.objectContaining({ failure: 'throttled' }),
    })
    expect(JSON.parse(listed.stdout).data).toContainEqual(busy)
    const good = await fixture.server().otpd(['provider', 'test', 'spare', '+33698765432', '--json'], run)
    expect([good.exitCode, JSON.parse(good.stdout).data.outcome]).toEqual([0, 'accepted'])
    expect(fixture.spare.messages.at(-1)?.to).toBe('+33698765432')
    const bad = await fixture.server().otpd(['provider', 'test', 'account', '+33698765432', '--json'], run)
    expect([bad.exitCode, JSON.parse(bad.stdout).data.failure.class]).toEqual([8, 'auth_failed'])
    expect((await fixture.server().otpd(['provider', 'test', 'missing', '+33698765432'], run)).exitCode).toBe(
      5,
    )
    expect(listed.stdout + good.stdout + bad.stderr).not.toContain(authToken)
  })
})
