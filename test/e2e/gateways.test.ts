import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../helpers/binary.ts'
import { hasKannel, startKannel, type Kannel } from '../helpers/kannel.ts'
import { credentialHeaders } from '../helpers/service.ts'
import { hasSmpp34, startSmpp34, type Smpp34 } from '../helpers/smpp34.ts'

/** Tests the compiled server with third-party gateways. Codes are read at the gateway, never from otpd. */

type Otpd = Awaited<ReturnType<typeof startOtpd>>
type OtpRequestState = { status: string; deliveryStatus: string; provider: string }

const secret = 'gateway-secret'

/** Starts a server with a provider, and a live application whose messages have the origin-bound line for browsers. */
async function startOtpd(provider: string) {
  const home = mkdtempSync(join(tmpdir(), 'otpd-gateways-'))
  const configFile = join(home, 'otpd.toml')
  writeFileSync(configFile, provider, { mode: 0o600 })
  const server = await startServer({ home, env: { OTPD_CONFIG: configFile, GATEWAY_SECRET: secret } })
  const { otpd } = server
  await otpd(
    ['login', '--setup-token', server.setupToken(), '--email', 'ada@example.com', '--password-stdin'],
    {
      input: 'correct horse battery',
    },
  )
  await otpd(['project', 'create', 'shop'])
  const createResult = await otpd(['app', 'create', 'Café', '--project', 'shop', '--env', 'live', '--json'])
  const application: { id: string } & Parameters<typeof credentialHeaders>[0] = JSON.parse(
    createResult.stdout,
  ).data
  const change = JSON.stringify({ webOtpDomain: 'shop.example' })
  await otpd(['api', 'PATCH', `/v1/applications/${application.id}`, '--data', change])

  async function call<T>(method: string, path: string, body?: object) {
    const response = await fetch(`${server.url}${path}`, {
      method,
      headers: { ...credentialHeaders(application), 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    // The caller names the expected shape; any other fails the test.
    const { data }: { data: T } = JSON.parse(await response.text())
    return { status: response.status, data }
  }

  return {
    async send(phone: string, locale: string) {
      const { status, data } = await call<{ requestId: string }>('POST', '/v1/otp/send', { phone, locale })
      expect(status).toBe(201)
      return data.requestId
    },
    getRequest: async (requestId: string) =>
      (await call<OtpRequestState>('GET', `/v1/otp/${requestId}`)).data,
    verify: async (requestId: string, code: string) =>
      (await call('POST', '/v1/otp/verify', { requestId, code })).status,
    /** Lists the log entries of a type. */
    async events(type: string) {
      const { stdout } = await otpd(['api', 'GET', `/v1/logs?type=${type}`])
      const { data }: { data: Array<{ requestId: string; detail: string | null }> } = JSON.parse(stdout)
      return data
    },
    async stop() {
      expect(await server.stop()).toBe(0)
      rmSync(home, { recursive: true, force: true })
    },
  }
}

const codeIn = (text: string) => /\d{6}/.exec(text)?.[0] ?? ''

/** Expected texts, in the GSM alphabet (`en`) and in UCS-2 (`ru`). */
const texts = {
  en: (code: string) =>
    `${code} is your Café verification code. It expires in 5 minutes.\n@shop.example #${code}`,
  ru: (code: string) => `Код подтверждения Café: ${code}.\n@shop.example #${code}`,
}

describe.skipIf(!hasKannel)('Kannel', () => {
  let kannel: Kannel
  let otpd: Otpd

  beforeAll(async () => {
    kannel = await startKannel(secret)
    otpd = await startOtpd(`
[[providers]]
name = "kannel"
kind = "http-template"
url = "${kannel.url}/cgi-bin/sendsms?username={{username}}&password={{password}}&from=ACME&to={{digits}}&text={{text}}&charset=UTF-8&coding={{gsm?0:2}}&validity={{validityMinutes}}"
method = "GET"
username = "${kannel.username}"
passwordEnv = "GATEWAY_SECRET"
successStatus = "202"
refusals = """
Authorization failed = auth_failed
receiver number = invalid_number"""
`)
  }, 300_000)

  afterAll(async () => {
    await otpd?.stop()
    await kannel?.stop()
  })

  test.each([
    ['en', 0, '+31612345601'],
    ['ru', 2, '+31612345602'],
  ] as const)(
    'logs a code (%s) and passes it on to the mobile operator unchanged',
    async (locale, coding, phone) => {
      const requestId = await otpd.send(phone, locale)
      const sent = await kannel.waitForMessageTo(phone)
      const code = codeIn(sent.text)
      expect(sent.coding).toBe(coding)
      expect(kannel.smsc.submits.at(-1)).toMatchObject({
        destination_addr: phone.slice(1),
        short_message: { message: texts[locale](code) },
      })
      expect(await otpd.getRequest(requestId)).toMatchObject({ deliveryStatus: 'sent', provider: 'kannel' })
      expect(await otpd.verify(requestId, code)).toBe(200)
    },
    300_000,
  )
})

describe.skipIf(!hasSmpp34)('a third-party SMSC', () => {
  let smsc: Smpp34
  let otpd: Otpd

  beforeAll(async () => {
    smsc = await startSmpp34()
    otpd = await startOtpd(`
[[providers]]
name = "operator"
kind = "smpp"
host = "127.0.0.1"
port = ${smsc.port}
tls = "off"
systemId = "otpd"
passwordEnv = "GATEWAY_SECRET"
from = "ACME"
`)
  }, 300_000)

  afterAll(async () => {
    await otpd?.stop()
    await smsc?.stop()
  })

  /** Sends a code and waits for the delivery receipt. */
  async function sendTo(phone: string, locale: 'en' | 'ru') {
    const requestId = await otpd.send(phone, locale)
    const message = await smsc.waitForMessageTo(phone)
    let otpRequest = await otpd.getRequest(requestId)
    // otpd confirms the receipt to the SMSC before it has stored it. Each iteration is a call, so this loop waits.
    while (otpRequest.deliveryStatus === 'sent') otpRequest = await otpd.getRequest(requestId)
    return { requestId, message, otpRequest, code: codeIn(message.text) }
  }

  test.each([
    ['en', 0, '+31612345611'],
    ['ru', 8, '+31612345612'],
  ] as const)(
    'accepts a code (%s) and reports that it was delivered',
    async (locale, dataCoding, phone) => {
      const { requestId, message, otpRequest, code } = await sendTo(phone, locale)
      expect(message).toMatchObject({ from: 'ACME', dataCoding, text: texts[locale](code) })
      expect(otpRequest).toMatchObject({
        status: 'pending',
        deliveryStatus: 'delivered',
        provider: 'operator',
      })
      expect(await otpd.events('otp.delivered')).toContainEqual(expect.objectContaining({ requestId }))
      expect(await otpd.verify(requestId, code)).toBe(200)
    },
    300_000,
  )

  test('reports an undeliverable phone', async () => {
    const { requestId, otpRequest } = await sendTo('+31612345600', 'en')
    expect(otpRequest.deliveryStatus).toBe('undelivered')
    expect(await otpd.events('otp.undelivered')).toContainEqual(expect.objectContaining({ requestId }))
  }, 300_000)
})
