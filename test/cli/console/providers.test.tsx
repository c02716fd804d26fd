import { test } from 'bun:test'
import { App } from '../../../cli/console/App.tsx'
import { renderConsole } from '../../helpers/console-render.tsx'
import { createScriptedServer, errorResponse, pageResponse } from '../cli-fixture.ts'

const refusal = {
  requestId: 'otp_1',
  at: '2026-11-20T12:00:00.000Z',
  channel: 'sms',
  outcome: 'refused',
  error: 'sender_invalid',
  providerReply: 'ERR 17: unknown sender',
}
const provider = {
  name: 'main',
  kind: 'http-template',
  title: 'HTTP, described by templates',
  channels: ['sms'],
  circuit: 'open',
  failure: 'auth_failed',
  retryAt: null,
  recentRefusals: [refusal],
}

/** Starts a server that has these providers, and nothing else. */
const serveProviders = (...providers: object[]) =>
  createScriptedServer(({ path }) =>
    path.startsWith('/v1/providers')
      ? pageResponse(...providers)
      : errorResponse(503, 'UNAVAILABLE', 'Not now.'),
  )

test('names the failure of a provider in full on 80 columns', async () => {
  const down = { ...provider, failure: 'provider_down' }
  const server = serveProviders(down)
  const app = renderConsole(<App />, { serverUrl: server.url, columns: 80 })
  app.console.go('providers')
  await app.waitForText(/main .*failing +provider down /)
  app.close()
  await server.stop()
})

test('says that a provider fails which the next message tries', async () => {
  const retryAt = (at: number) => ({ ...provider, retryAt: new Date(at).toISOString() })
  const server = serveProviders(retryAt(Date.now() - 1000), {
    ...retryAt(Date.now() + 90_000),
    name: 'spare',
  })
  const app = renderConsole(<App />, { serverUrl: server.url, columns: 80 })
  app.console.go('providers')
  await app.waitForText(/main .*✗ failing /)
  await app.waitForText(/spare .*✗ retry in 1 min/)
  app.close()
  await server.stop()
})

test('shows when a provider without a failure last refused a message', async () => {
  const ready = { ...provider, circuit: 'closed', failure: null }
  const server = serveProviders(ready, { ...ready, name: 'spare', recentRefusals: [] })
  const app = renderConsole(<App />, { serverUrl: server.url, columns: 80 })
  app.console.go('providers')
  await app.waitForText(/STATE +LAST FAILURE/)
  await app.waitForText(/main .*ready +\d\d[:-]\d\d/)
  await app.waitForText(/spare .*ready +- /)
  app.close()
  await server.stop()
})

test('opens a provider with its state, its test and the messages that it refused', async () => {
  const server = serveProviders(provider)
  const app = renderConsole(<App />, { serverUrl: server.url, columns: 110 })
  app.console.go('providers')
  await app.waitForText(/main .*failing/)
  app.press('enter')
  await app.waitForText(/test +otpd provider test main PHONE/)
  await app.waitForText(/refused +SMS +sender invalid +ERR 17: unknown sender/)
  app.close()
  await server.stop()
})
