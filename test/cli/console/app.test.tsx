import { afterAll, afterEach, expect, test } from 'bun:test'
import { Text } from 'ink'
import { App } from '../../../cli/console/App.tsx'
import { useConsole } from '../../../cli/console/console-context.ts'
import { screenNames } from '../../../cli/console/keymap.ts'
import { screens } from '../../../cli/console/screens.ts'
import { renderConsole } from '../../helpers/console-render.tsx'
import { createScriptedServer, errorResponse, pageResponse } from '../cli-fixture.ts'

const summary = { applications: 0, otpRequests: 0, otpVerified: 0, successRate: 0, activeUsers: 0 }
const profile = {
  id: 'dev_1',
  name: 'Ada',
  email: 'ada@example.com',
  company: null,
  plan: 'free',
  virtualPhoneNumber: '+9990000000000',
  limits: {
    projects: 10,
    applications: 5,
    sendPerMinute: 5,
    verifyPerMinute: 10,
    lookupsPerMinute: 60,
    consolePerMinute: 600,
  },
  createdAt: '2026-11-20T12:00:00.000Z',
}
const inboxItem = (number: number) => ({
  id: `msg_${number}`,
  requestId: `otp_${number}`,
  appId: null,
  phone: `+1415555${number}`,
  code: '123456',
  text: `Message ${number}`,
  sentAt: '2026-11-20T12:00:00.000Z',
  expiresAt: '2026-11-20T12:05:00.000Z',
})
let inbox = [inboxItem(1001)]
let isRefused = false

const olderGuard = { mode: 'off', rules: [], alerts: [] }
let guard: object = { ...olderGuard, allowances: [], pool: { allowance: 0, unverified: 0 } }

const olderProvider = {
  name: 'main',
  kind: 'twilio',
  title: 'Twilio',
  channels: ['sms'],
  circuit: 'closed',
  failure: null,
  retryAt: null,
}
let rules: object[] = []
let providers: object[] = []
let logs: Array<Record<string, string | null> & { type: string }> = []

const failedLogin = {
  id: 'aud_1',
  action: 'login.failed',
  at: '2026-11-20T12:00:00.000Z',
  source: 'api',
  ip: '203.0.113.7',
  actorId: null,
  targetId: null,
  targetName: null,
  detail: null,
  userAgent: null,
  traceId: null,
  tokenId: null,
}

const server = createScriptedServer(({ path }) => {
  if (path.startsWith('/v1/logs/stream')) return errorResponse(503, 'UNAVAILABLE', 'Not now.')
  if (path.startsWith('/v1/logs?')) return pageResponse(...logs.filter(({ type }) => path.includes(type)))
  if (path.startsWith('/v1/analytics/summary')) return Response.json({ data: summary })
  if (path.startsWith('/v1/developer/me')) return Response.json({ data: profile })
  if (path.startsWith('/v1/guard/rules?')) return pageResponse(...rules)
  if (path.startsWith('/v1/guard/rules')) return errorResponse(404, 'NOT_FOUND', 'No such route.')
  if (path.startsWith('/v1/guard')) return Response.json({ data: guard })
  if (path.startsWith('/v1/audit')) return pageResponse(failedLogin)
  if (path.startsWith('/v1/providers')) return pageResponse(...providers)
  if (path.startsWith('/v1/inbox') && isRefused) return errorResponse(403, 'FORBIDDEN', 'No inbox for you.')
  if (path.startsWith('/v1/inbox')) return pageResponse(...inbox)
  return pageResponse()
})
afterAll(() => server.stop())

let close = () => {}
afterEach(() => close())

function renderApp() {
  const app = renderConsole(<App />, { serverUrl: server.url })
  close = app.close
  return app
}

test('no screen, and not the help, writes while it renders', async () => {
  const app = renderApp()
  for (const name of screenNames) {
    const heading = `── ${screens[name].title} ─`
    app.console.go(name)
    await app.waitForText(heading)
    app.press('?')
    await app.waitForText('── Keys ─')
    app.press('esc')
    await app.waitForText(heading)
  }
})

test('shows what countries got of codes of other systems', async () => {
  guard = { ...olderGuard, relays: [{ country: 'NL', allowance: 300, unverified: 120 }] }
  const app = renderConsole(<App />, { serverUrl: server.url })
  app.console.go('guard')
  await app.waitForText(/NL +120 of 300 codes of other systems/)
  app.close()
})

test('shows codes of other systems that the guard refused, and none that a network did', async () => {
  const entry = { appId: null, status: null, at: '2026-11-20T12:00:00.000Z', type: 'message.undelivered' }
  logs = [
    { ...entry, id: '2', requestId: 'msg_2', phone: '+14155550102', detail: 'blocked RELAY_VOLUME' },
    { ...entry, id: '1', requestId: 'msg_1', phone: '+14155550101', detail: 'blocked_by_carrier' },
  ]
  const app = renderApp()
  app.console.go('guard')
  await app.waitForText('blocked RELAY_VOLUME')
  expect(app.frame()).not.toContain('blocked_by_carrier')
  logs = []
})

test('asks again before a guard rule for a whole calling code', async () => {
  const app = renderApp()
  app.console.go('guard')
  await app.waitForText('d deny')
  app.press('d')
  await app.waitForText('Deny codes')
  app.press('+', '1', 'enter', 'enter', 'enter')
  await app.waitForText('This refuses codes for all numbers that begin with +1.')
  // The scripted server has no rules: it answers once they are asked for.
  app.press('+', '1', 'enter')
  await app.waitForText('No such route.')
})

test('names the application of a guard rule to remove', async () => {
  const rule = { effect: 'deny', target: 'prefix', value: '+882', expiresAt: null }
  rules = [
    { ...rule, id: 'rul_1', appId: null },
    { ...rule, id: 'rul_2', appId: 'app_web' },
  ]
  const app = renderApp()
  app.console.go('guard')
  await app.waitForText('D remove')
  app.press('D')
  await app.waitForText(/deny \+882 +prefix/)
  await app.waitForText(/deny \+882, app_web +prefix/)
  rules = []
})

test('shows the challenge of a guard that enforces', async () => {
  guard = {
    ...olderGuard,
    mode: 'enforce',
    challenge: 'altcha',
    allowances: [],
    pool: { allowance: 0, unverified: 0 },
  }
  const app = renderConsole(<App />, { serverUrl: server.url })
  app.console.go('guard')
  await app.waitForText('challenge altcha: users who pass it have three times the allowances')
  app.close()
})

test('shows the guard and the providers of a server of 0.2.0, which sends fewer fields', async () => {
  guard = olderGuard
  providers = [olderProvider]
  const app = renderApp()
  app.console.go('guard')
  await app.waitForText('nothing is counted')
  expect(app.frame()).not.toContain('pool')
  app.console.go('providers')
  await app.waitForText(/main .*ready/)
  app.press('enter')
  await app.waitForText(/test +otpd provider test main PHONE/)
})

test('the guard shows its rules in full on a key where they have no room', async () => {
  const limit = `${'a long text about this limit '.repeat(6)}with its end`
  guard = {
    ...olderGuard,
    rules: Array.from({ length: 16 }, (_, index) => ({ rule: `RULE_${index}`, limit })),
  }
  const app = renderApp()
  app.console.go('guard')
  await app.waitForText('more lines: press t')
  expect(app.frame()).not.toContain('with its end')
  app.press('t')
  await app.waitForText('with its end')
  for (let page = 0; page < 3; page++) app.press('pagedown')
  await app.waitForText('RULE_15')
  app.press('esc')
  await app.waitForText('more lines: press t')
})

test('alerts of the guard leave room for its allowances where not all lines fit', async () => {
  const until = '2026-11-20T13:00:00.000Z'
  const countries = ['AU', 'ES', 'FR', 'GB', 'IT', 'US']
  guard = {
    ...olderGuard,
    alerts: ['pool', ...countries].map((country) => ({ country, until })),
    allowances: [{ country: 'AU', verifiedPhones: 0, unverified: 35, allowance: 100 }],
    rules: Array.from({ length: 12 }, (_, index) => ({ rule: `RULE_${index}`, limit: 'off' })),
  }
  const app = renderApp()
  app.console.go('guard')
  await app.waitForText('6 countries have more unverified messages than usual: AU, ES, FR, GB')
  expect(app.frame()).toContain('The pool of all countries is spent  alert ends')
  expect(app.frame()).toContain('35 of 100 unverified')
  app.press('t')
  await app.waitForText('US has more unverified messages than usual')
})

test('the audit trail knows no person behind a failed login', async () => {
  const app = renderApp()
  app.console.go('audit')
  await app.waitForText('login.failed')
  app.press('enter')
  await app.waitForText(/ by +unknown/)
})

test('the help keeps the keys that were active when it was opened', async () => {
  const app = renderApp()
  app.press('6')
  await app.waitForText('Message 1001')
  app.press('?')
  await app.waitForText('copy code')
  inbox = []
  app.console.refresh()
  await app.waitForText('copy code')
  app.press('esc')
  await app.waitForText('No messages')
  app.press('?')
  await app.waitForText('── Keys ─')
  expect(app.frame()).not.toContain('copy code')
})

test('the last answer stays on the screen when the server refuses, with the reason, until it answers', async () => {
  inbox = [inboxItem(1002)]
  const app = renderApp()
  app.press('6')
  await app.waitForText('Message 1002')
  isRefused = true
  app.press('r')
  await app.waitForText('No inbox for you.')
  expect(app.frame()).toContain('Message 1002')
  isRefused = false
  inbox = [inboxItem(1003)]
  app.press('r')
  await app.waitForText('Message 1003')
  expect(app.frame()).not.toContain('No inbox for you.')
})

test('a paused console asks nothing but what r asks for, and goes on afterwards', async () => {
  inbox = [inboxItem(1004)]
  const app = renderApp()
  app.press('6')
  await app.waitForText('Message 1004')
  app.press('p')
  await app.waitForText('paused')
  inbox = [inboxItem(1005)]
  app.press('r')
  await app.waitForText('Message 1005')
  inbox = [inboxItem(1006)]
  app.press('p')
  await app.waitForText('Message 1006')
})

test('a component that writes to the state of the console while it renders fails its test', async () => {
  function Writer() {
    const { refresh } = useConsole()
    refresh()
    return <Text>{['dr', 'awn'].join('')}</Text>
  }
  const app = renderConsole(<Writer />)
  close = app.close
  await expect(app.waitForText('drawn')).rejects.toThrow('while it rendered')
})
