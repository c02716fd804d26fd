import { afterAll, expect, test } from 'bun:test'
import { App } from '../../../cli/console/App.tsx'
import { renderConsole } from '../../helpers/console-render.tsx'
import { createScriptedServer, errorResponse, pageResponse } from '../cli-fixture.ts'

const pending = {
  id: 'otp_1',
  appId: 'app_1',
  phone: '+14155550132',
  status: 'pending',
  environment: 'live',
  channel: 'sms',
  provider: 'inbox',
  attempts: 0,
  maxAttempts: 5,
  createdAt: '2026-11-20T11:59:00.000Z',
  expiresAt: '2026-11-20T12:04:00.000Z',
  country: null,
  failureReason: null,
  deliveryStatus: null,
  deliveries: [],
  resends: 0,
  metadata: null,
  template: null,
  verifiedAt: null,
  timeline: [],
}

const server = createScriptedServer(({ path }) =>
  path.startsWith('/v1/otp/otp_1')
    ? Response.json({ success: true, data: pending })
    : path.startsWith('/v1/otp') || path.startsWith('/v1/webhooks')
      ? pageResponse()
      : errorResponse(503, 'UNAVAILABLE', 'Not now.'),
)
afterAll(() => server.stop())

test('applications that are not loaded are not said to be missing', async () => {
  const app = renderConsole(<App />, { serverUrl: server.url })
  app.console.go('otp')
  await app.waitForText('No codes yet')
  expect(app.frame()).not.toContain('S send)')
  app.console.go('webhooks')
  await app.waitForText('No webhooks yet')
  expect(app.frame()).not.toContain('Create an application first')
  expect(app.frame()).not.toContain('(n ')
})

test('the application of a request is not said to be deleted while applications are not loaded', async () => {
  const app = renderConsole(<App />, { serverUrl: server.url })
  app.console.go('otp', { requestId: pending.id })
  await app.waitForText('open app')
  expect(app.frame()).not.toContain('verify')
  expect(app.frame()).not.toContain('resend')
})

test('rows of one environment are not said to be none while applications are not loaded', async () => {
  const app = renderConsole(<App />, { serverUrl: server.url })
  app.console.go('webhooks')
  await app.waitForText('No webhooks yet')
  app.press('E')
  await app.waitForText('Not now.')
  expect(app.frame()).not.toContain('No webhooks yet')
})
