import { afterAll, afterEach, expect, test } from 'bun:test'
import { App } from '../../../cli/console/App.tsx'
import { renderConsole } from '../../helpers/console-render.tsx'
import { createScriptedServer, errorResponse, pageResponse } from '../cli-fixture.ts'

const at = '2026-11-20T12:00:00.000Z'
const entry = (type: string, phone: string) => ({
  id: `evt_${phone.slice(1).padStart(26, '0')}`,
  type,
  phone,
  at,
  appId: null,
  requestId: null,
  status: 'pending',
  detail: null,
})
const deed = (action: string, targetName: string) => ({
  id: `aud_${action}`,
  action,
  targetName,
  at,
  actorId: null,
  targetId: null,
  detail: null,
  source: 'host',
  ip: null,
  userAgent: null,
  traceId: null,
  tokenId: null,
})

const user = (phone: string) => ({
  id: `idn_${phone.slice(1).padStart(26, '0')}`,
  environment: 'live',
  phone,
  country: 'US',
  verificationCount: 1,
  applications: [],
  firstVerifiedAt: at,
  lastVerifiedAt: at,
})

const request = (phone: string) => ({
  id: `otp_${phone.slice(1).padStart(26, '0')}`,
  environment: 'live',
  phone,
  status: 'expired',
  attempts: 0,
  maxAttempts: 5,
  appId: null,
  createdAt: at,
  expiresAt: at,
  channel: 'sms',
  provider: null,
})

// Entries that match are older than what a screen starts with: only the server can find them.
const paths: string[] = []
const server = createScriptedServer(({ path }) => {
  paths.push(path)
  const query = new URL(path, 'http://otpd').searchParams
  if (path.startsWith('/v1/logs/stream')) return errorResponse(503, 'UNAVAILABLE', 'Not now.')
  if (path.startsWith('/v1/logs'))
    return pageResponse(
      query.get('type') === 'otp.verified'
        ? entry('otp.verified', '+14155550101')
        : entry('otp.sent', '+14155550102'),
    )
  if (path.startsWith('/v1/otp?')) {
    const phone = query.get('phone')
    if (phone === '+770900999') return errorResponse(400, 'INVALID_PHONE_NUMBER', 'Invalid.')
    if (phone === null) return pageResponse(request('+14155550105'))
    if (phone === '+447700900123') return pageResponse(request(phone))
    return phone === '7700900123' ? pageResponse(request('+447700900123')) : pageResponse()
  }
  if (path.startsWith('/v1/users/'))
    return path.startsWith('/v1/users/%2B447700900123')
      ? Response.json({ data: user('+447700900123') })
      : errorResponse(404, 'NOT_FOUND', 'Not found.')
  if (path.startsWith('/v1/users')) {
    const digits = query.get('phone')
    return digits === '0999'
      ? pageResponse()
      : pageResponse(user(digits === '4155550103' || digits === '0103' ? '+14155550103' : '+14155550104'))
  }
  if (path.startsWith('/v1/audit'))
    return pageResponse(
      query.get('action') === 'project.deleted'
        ? deed('project.deleted', 'old shop')
        : deed('login.succeeded', ''),
    )
  return errorResponse(503, 'UNAVAILABLE', 'Not now.')
})
afterEach(() => void (paths.length = 0))
afterAll(() => server.stop())

test('the search of the log and of the audit trail finds entries that the screen has not loaded', async () => {
  const app = renderConsole(<App />, { serverUrl: server.url })
  app.console.go('logs')
  await app.waitForText('otp.sent')
  app.press('/', ...'otp.verified', 'enter')
  await app.waitForText(/otp\.verified +\+1415\*\*\*0101/)
  expect(app.frame()).not.toContain('0102')
  app.press('esc')
  await app.waitForText('0102')
  app.press('E')
  await app.waitForText(/ LIVE  /)
  while (!paths.some((path) => path.startsWith('/v1/logs?') && path.includes('environment=live')))
    await Bun.sleep(10)
  app.console.go('audit')
  await app.waitForText('login.succeeded')
  app.press('/', ...'project.deleted', 'enter')
  await app.waitForText(/project\.deleted +old shop/)
  // A text that is no filter of the API is looked for in more than the newest entries.
  app.press('esc')
  await app.waitForText('login.succeeded')
  app.press('/', ...'shop', 'enter')
  await app.waitForText('No matching rows.')
  app.close()
})

test('the search of users asks the server for last digits, and says where they were looked for', async () => {
  const app = renderConsole(<App />, { serverUrl: server.url })
  app.console.go('users')
  await app.waitForText('0104')
  app.press('/', ...'0103', 'enter')
  await app.waitForText('+1415***0103')
  app.press('esc')
  await app.waitForText('+1415***0104')
  app.press('/', ...'0999', 'enter')
  await app.waitForText('None of the newest 1,000 users has a number that ends with 0999.')
  app.close()
})

test('digits without + are the whole number, or else the end of one', async () => {
  const app = renderConsole(<App />, { serverUrl: server.url })
  for (const typed of ['447700900123', '7700 900123']) {
    app.console.go('otp')
    await app.waitForText('+1415***0105')
    app.press('/', ...typed, 'enter')
    await app.waitForText('+4477***0123')
    app.press('esc')
  }
  await app.waitForText('+1415***0105')
  app.press('/', ...'770900999', 'enter')
  await app.waitForText('None of the newest 500 codes went to a number that ends with 770900999.')
  app.console.go('users')
  await app.waitForText('+1415***0104')
  app.press('/', ...'4155550103', 'enter')
  await app.waitForText('+1415***0103')
  app.press('esc')
  await app.waitForText('+1415***0104')
  app.press('/', ...'447700900123', 'enter')
  await app.waitForText('+4477***0123')
  app.close()
})
