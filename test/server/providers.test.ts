import { expect, test } from 'bun:test'
import { openProviders } from '../../src/server/providers.ts'
import { testClock } from '../helpers/clock.ts'

test('the test of a provider says what it answered, and when that was too late for a send', async () => {
  const clock = testClock()
  let takesMs = 8_000
  const gateway = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch() {
      clock.advance(takesMs)
      return takesMs > 8_000 ? new Response('ERR 17: unknown sender ACME') : new Response('OK')
    },
  })
  const values = {
    url: `${gateway.url.href}?text={{text}}`,
    method: 'GET',
    bodyType: 'json',
    successStatus: '2xx',
    successText: 'OK',
  }
  const providers = openProviders(
    { delivery: { providers: [{ name: 'main', kind: 'http-template', values }], routes: [] } },
    '0',
    clock,
  )
  try {
    const test = () => providers.test('main', '+447700900123')
    expect(await test()).toMatchObject({ outcome: 'accepted', tookMs: 8_000, late: false })
    takesMs = 8_001
    expect(await test()).toMatchObject({
      outcome: 'refused',
      failure: { providerCode: 'HTTP 200', reply: 'ERR 17: unknown sender ACME' },
      late: true,
    })
  } finally {
    providers.close()
    await gateway.stop(true)
  }
})

test('the list says which providers take delivery receipts with their settings', async () => {
  const telnyx = { apiKey: 'key', verifyProfileId: '49000192-1bdb-c56f-3de7-e008ef6da16b', channels: 'sms' }
  const publicKey = 'j3EApzZjNqVQmSohBbuFAIVIt25PWACpUXpNBkba9xo='
  const settings = [
    { name: 'unsigned', kind: 'telnyx-verify', values: { ...telnyx, baseUrl: 'https://api.telnyx.com' } },
    {
      name: 'signed',
      kind: 'telnyx-verify',
      values: { ...telnyx, publicKey, baseUrl: 'https://api.telnyx.com' },
    },
    {
      name: 'gateway',
      kind: 'http-template',
      values: { url: 'https://sms.example.com/{{code}}', channels: 'sms' },
    },
  ]
  const providers = openProviders({ delivery: { providers: settings, routes: [] } }, '0')
  const listed = await providers.list()
  providers.close()
  expect(listed.map(({ name, takesReceipts }) => [name, takesReceipts])).toEqual([
    ['unsigned', false],
    ['signed', true],
    ['gateway', false],
  ])
})
