import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startFaultyServer } from '../helpers/provider-faults.ts'
import { createFailoverFixture, type FailoverFixture } from './failover-fixture.ts'

let fixture: FailoverFixture

beforeAll(async () => {
  fixture = createFailoverFixture()
  fixture.writeConfig()
  await fixture.setUp()
}, 300_000)

afterAll(() => fixture.dispose())

describe('a server that is killed', () => {
  /** Sends, kills the server once `reached` resolves, and restarts it with a provider that works. */
  async function kill(provider: { url: string }, reached: Promise<unknown>, key: Record<string, string>) {
    fixture.faults.set('main', { ...provider, messages: [] })
    fixture.writeConfig()
    await fixture.reload()
    const to = fixture.nextPhone('main')
    const lost = fixture.call('POST', '/v1/otp/send', { phone: to }, key).catch(() => 'no response')
    await reached
    process.kill(fixture.server().pid, 'SIGKILL')
    await fixture.server().exited
    expect(await lost).toBe('no response')

    const restartedGateway = fixture.addGateway()
    fixture.faults.set('main', restartedGateway)
    fixture.writeConfig()
    await fixture.start()
    await fixture.server().waitForLog('"msg":"message accepted"')
    const retryResponse = await fixture.call<{ requestId: string }>(
      'POST',
      '/v1/otp/send',
      { phone: to },
      key,
    )
    expect([retryResponse.status, restartedGateway.messages.map((text) => text.to)]).toEqual([201, [to]])
    expect((await fixture.verify(retryResponse.data.requestId, restartedGateway.messages[0])).status).toBe(
      200,
    )
    const path = `/v1/otp/${retryResponse.data.requestId}/events`
    const { data: events } = await fixture.call<Array<Record<string, unknown>>>('GET', path)
    expect(events.filter(({ type }) => type === 'delivery.attempted')).toMatchObject([
      { outcome: 'accepted', interrupted: true },
    ])
    return restartedGateway.messages
  }

  test('between commit and dispatch sends the message after the restart', async () => {
    const reached = Promise.withResolvers<void>()
    // Accepts the connection but never answers the TLS handshake, so no part of the message is sent.
    const unresponsiveServer = await startFaultyServer(() => reached.resolve())
    fixture.onDispose(unresponsiveServer.stop)
    const url = `https://127.0.0.1:${unresponsiveServer.port}`
    await kill({ url }, reached.promise, { 'idempotency-key': 'before' })
  }, 300_000)

  test('after the provider accepted the message sends it again, with the same code', async () => {
    const reached = Promise.withResolvers<void>()
    const acceptingGateway = fixture.addGateway()
    acceptingGateway.setHandler((received) => {
      // The report of how the request of the first test ended is no message.
      if (received.path.endsWith('/Feedback.json')) return new Response(null, { status: 201 })
      acceptingGateway.acceptMessage(received)
      reached.resolve()
      return new Promise(() => {})
    })
    const texts = await kill(acceptingGateway, reached.promise, { 'idempotency-key': 'after' })
    expect(texts.map(({ code }) => code)).toEqual(acceptingGateway.messages.map(({ code }) => code))
  }, 300_000)
})
