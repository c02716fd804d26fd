import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { authToken, createTwilioSettings, startGateway } from '../delivery/gateway.ts'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { startNetworks, type Report } from '../helpers/carriers/networks.ts'
import { canMoveClocks, createProcessClock, type ProcessClock } from '../helpers/process-clock.ts'
import { credentialHeaders } from '../helpers/service.ts'
import { login, makeServerHome } from '../helpers/webhook-client.ts'

/**
 * The networks with texts of their own, each in front of the same second provider, through the compiled server: what the network
 * hears, what the second provider sends, and what the timeline of the request says of it.
 */

const networks = startNetworks(() => clock.now())
const spare = startGateway()

let server: RunningServer
let clock: ProcessClock
let headers: Record<string, string>
/** URLs for receipts, by provider. */
const callbackUrls = new Map<string, string>()

async function start() {
  const { home, args, env } = makeServerHome()
  clock = createProcessClock(home)
  const config = join(home, 'otpd.toml')
  const { tables, secrets } = configureProviders()
  appendFileSync(config, `${tables}\n`)
  const publicUrl = { OTPD_PUBLIC_URL: 'https://otp.example.com' }
  server = await startServer({ home, args, env: { ...env, ...secrets, ...publicUrl, ...clock.env } })
  const { otpd } = server
  await otpd(['login', '--email', login.username, '--password-stdin'], { input: login.password })
  await otpd(['project', 'create', 'shop'])
  const created = await otpd(['app', 'create', 'Shop', '--project', 'shop', '--env', 'live', '--json'])
  headers = { ...credentialHeaders(JSON.parse(created.stdout).data), 'content-type': 'application/json' }
  const listed = await otpd(['provider', 'list', '--config', config, '--json'], {
    env: { ...secrets, ...publicUrl, OTPD_DATA_DIR: server.dataDir },
  })
  const { data }: { data: Array<{ name: string; callbackUrl: string | null }> } = JSON.parse(listed.stdout)
  for (const { name, callbackUrl } of data) if (callbackUrl !== null) callbackUrls.set(name, callbackUrl)
}

async function stop() {
  await server.stop('SIGKILL')
  rmSync(server.home, { recursive: true, force: true })
  clock.close()
  await Promise.all([...networks.map((network) => network.server.stop()), spare.stop()])
}

function configureProviders() {
  const secrets: Record<string, string> = { SPARE: authToken }
  const tables = networks.map(({ kind, country, settings, secrets: own, server: { url } }) => {
    const values = Object.entries({ kind, name: kind, baseUrl: url, ...settings })
    const variables = Object.entries(own).map(([name, value]) => {
      const variable = `${kind}_${name}`.replaceAll('-', '_').toUpperCase()
      secrets[variable] = value
      return [`${name}Env`, variable] as const
    })
    const provider = [...values, ...variables].map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
    const route = ['channel = "sms"', `countries = ["${country}"]`, `providers = ["${kind}", "spare"]`]
    return ['[[providers]]', ...provider, '[[routes]]', ...route].join('\n')
  })
  const { name, kind, values } = createTwilioSettings('spare', spare.url)
  const { accountSid, from, baseUrl } = values
  const spareValues = Object.entries({ name, kind, accountSid, from, baseUrl, authTokenEnv: 'SPARE' })
  const spareLines = spareValues.map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
  return { secrets, tables: [...tables, '[[providers]]', ...spareLines].join('\n') }
}

type Answer = { status: number; data?: { requestId: string }; error?: { code: string; reason?: string } }

async function post(path: string, body: object): Promise<Answer> {
  const response = await fetch(`${server.url}/v1/otp${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  // The server is the one under test; its callers name the shape that they expect.
  const answer = (await response.json()) as Omit<Answer, 'status'>
  return { status: response.status, ...answer }
}

async function send(phone: string): Promise<string> {
  const { status, data } = await post('/send', { phone })
  expect(status).toBe(201)
  return data?.requestId ?? ''
}

type TimelineEntry = {
  type: string
  detail: string | null
  provider?: string
  outcome?: string
  error?: string | null
}

/** Reads the timeline of a request: an attempt as its provider, what it answered, and why it did not reach the phone. */
async function timeline(requestId: string): Promise<string[]> {
  const response = await fetch(`${server.url}/v1/otp/${requestId}/events`, { headers })
  const { data } = (await response.json()) as { data: TimelineEntry[] }
  return data.map(({ type, detail, provider, outcome, error }) =>
    (type === 'delivery.attempted' ? [provider, outcome, error] : [type, detail]).filter(Boolean).join(' '),
  )
}

/** Waits until the timeline of a request has an entry. @returns the timeline */
async function waitForEntry(requestId: string, entry: string): Promise<string[]> {
  for (let tries = 0; tries < 100; tries++) {
    const entries = await timeline(requestId)
    if (entries.includes(entry)) return entries
    await Bun.sleep(25)
  }
  throw new Error(`no ${entry} in ${(await timeline(requestId)).join(', ')}`)
}

describe.skipIf(!canMoveClocks)('through the compiled server', () => {
  beforeAll(start, 60_000)
  afterAll(stop)

  describe.each(networks)('$kind', (network) => {
    const { kind, server: carrier, failures } = network
    let phoneCount = 10
    const nextPhone = () => `${network.phones}${phoneCount++}`
    const codesTo = (phone: string) =>
      carrier.messages.filter(({ to }) => to === phone).map(({ code }) => code)
    const spareCodesTo = (phone: string) =>
      spare.messages.filter(({ to }) => to === phone).map(({ code }) => code)
    const lastMessage = () => {
      const message = carrier.messages.at(-1)
      if (!message) throw new Error('the network has no message')
      return message
    }

    /** Posts a report of the network on its newest message. @returns the status of the response; undefined if it makes none */
    async function report(kindOfReport: Report, requestId: string): Promise<number | undefined> {
      const callback = network.sign?.(kindOfReport, lastMessage(), requestId)
      if (!callback) return undefined
      const { pathname } = new URL(callbackUrls.get(kind) ?? '')
      return (await fetch(`${server.url}${pathname}`, { method: 'POST', ...callback })).status
    }
    /** Waits until the network has heard how its newest message ended. */
    async function waitUntilHeard(expected: string | undefined): Promise<string | undefined> {
      for (let tries = 0; tries < 200 && network.heard(lastMessage()) !== expected; tries++)
        await Bun.sleep(25)
      return network.heard(lastMessage())
    }

    test('sends the code that otpd made, once', async () => {
      const phone = nextPhone()
      const requestId = await send(phone)
      expect(codesTo(phone)).toEqual([expect.stringMatching(/^\d{6}$/)])
      expect(await timeline(requestId)).toEqual(['otp.sent', `${kind} accepted`])
    })

    test('sends the same code again, and another one for a new request', async () => {
      const phone = nextPhone()
      const requestId = await send(phone)
      clock.advance(31_000)
      expect(await post('/resend', { requestId })).toMatchObject({ status: 200 })
      expect(await timeline(requestId)).toEqual([
        'otp.sent',
        `${kind} accepted`,
        'otp.sent resend',
        `${kind} accepted`,
      ])
      const next = await send(phone)
      expect(await timeline(next)).toEqual(['otp.sent', `${kind} accepted`])
      const [first, second, third] = codesTo(phone)
      expect(second).toBe(first)
      expect(third).not.toBe(first)
      expect(spareCodesTo(phone)).toEqual([])
    })

    test('hears that the code was entered, and that another one was canceled', async () => {
      const phone = nextPhone()
      const requestId = await send(phone)
      const [code] = codesTo(phone)
      expect(await post('/verify', { requestId, code })).toMatchObject({ status: 200 })
      expect(await waitUntilHeard(network.ends.verified)).toBe(network.ends.verified)
      const canceled = await send(nextPhone())
      expect(await post('/cancel', { requestId: canceled })).toMatchObject({ status: 200 })
      const { canceled: expected } = network.ends
      if (expected !== undefined) expect(await waitUntilHeard(expected)).toBe(expected)
    })

    test('reports a delivered and a lost message, and the next provider sends the lost code for that reason', async () => {
      const phone = nextPhone()
      const delivered = await send(phone)
      const status = await report('delivered', delivered)
      if (status !== undefined) {
        expect(status).toBe(200)
        await waitForEntry(delivered, 'otp.delivered')
      }

      const other = nextPhone()
      const lost = await send(other)
      if ((await report('undelivered', lost)) === undefined) return
      const entries = await waitForEntry(lost, 'spare accepted')
      expect(entries).toEqual(['otp.sent', `${kind} accepted ${network.undelivered}`, 'spare accepted'])
      expect(spareCodesTo(other)).toEqual(codesTo(other))
    })

    test('blocks a message, which no other provider sends', async () => {
      const phone = nextPhone()
      if (!network.blocksAtOnce) {
        const requestId = await send(phone)
        expect(await report('blocked', requestId)).toBe(200)
        const entries = await waitForEntry(requestId, 'otp.undelivered blocked_by_carrier')
        expect(entries.slice(0, 3)).toEqual([
          'otp.sent',
          `${kind} accepted`,
          'otp.undelivered blocked_by_carrier',
        ])
      } else {
        carrier.setMode('block')
        const answer = await post('/send', { phone })
        carrier.setMode('accept')
        expect(answer).toMatchObject({ status: 502, error: { reason: 'BLOCKED_BY_CARRIER' } })
      }
      expect(spareCodesTo(phone)).toEqual([])
    })

    // Throttling comes last, because it pauses the provider.
    test.each(['refuse', 'unauthorized', 'throttle'] as const)(
      'answers with %s, and the next provider sends the code',
      async (mode) => {
        const phone = nextPhone()
        carrier.setMode(mode)
        const requestId = await send(phone)
        carrier.setMode('accept')
        expect(await timeline(requestId)).toEqual([
          'otp.sent',
          `${kind} refused ${failures[mode]}`,
          'spare accepted',
        ])
        expect(codesTo(phone)).toEqual([])
        expect(spareCodesTo(phone)).toHaveLength(1)
        if (mode === 'throttle') clock.advance(301_000)
      },
    )

    test('does not answer, and no other provider sends what may be on its way', async () => {
      const phone = nextPhone()
      carrier.setMode('hang')
      const sending = send(phone)
      while (!carrier.calls.some(({ body }) => body.includes(phone.slice(1)))) await Bun.sleep(10)
      clock.advance(9_000)
      const requestId = await sending
      carrier.setMode('accept')
      expect(await timeline(requestId)).toEqual(['otp.sent', `${kind} uncertain uncertain`])
      expect(spareCodesTo(phone)).toEqual([])
    })
  })
})
