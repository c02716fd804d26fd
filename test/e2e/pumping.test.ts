import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../helpers/binary.ts'
import { startProviderServer } from '../helpers/provider-server.ts'
import { credentialHeaders } from '../helpers/service.ts'

/** Tests the guard of the compiled server as delivered: nothing but the provider and the rate of the plan is set. */

type Shop = Awaited<ReturnType<typeof startShop>>

/** Starts a server with a live application. @param withProvider whether messages go to a gateway, or stay in the inbox */
async function startShop(withProvider: boolean) {
  const home = mkdtempSync(join(tmpdir(), 'otpd-pumping-'))
  const gateway = startProviderServer()
  const codes = new Map<string, string>()
  gateway.setHandler(({ body }) => {
    const { to, text } = JSON.parse(body) as { to: string; text: string }
    codes.set(to, /\d{6}/.exec(text)?.[0] ?? '')
    return Response.json({ id: '1' })
  })
  const provider = `[[providers]]
name = "gateway"
kind = "http-template"
url = "${gateway.url}/send"
body = '{"to": "{{to}}", "text": "{{text}}"}'
`
  const configFile = join(home, 'otpd.toml')
  // A day's messages in seconds: only the rate is raised.
  writeFileSync(
    configFile,
    `[limits]\nsendPerMinute = 0\nverifyPerMinute = 0\n${withProvider ? provider : ''}`,
  )
  const dataDir = join(home, 'data')
  const server = await startServer({ home, dataDir, env: { OTPD_CONFIG: configFile } })
  const { otpd } = server
  const login = [
    'login',
    '--setup-token',
    server.setupToken(),
    '--email',
    'ada@example.com',
    '--password-stdin',
  ]
  await otpd(login, { input: 'correct horse battery' })
  await otpd(['project', 'create', 'shop'])
  const { stdout } = await otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'live', '--json'])
  const { data: application }: { data: Parameters<typeof credentialHeaders>[0] } = JSON.parse(stdout)

  const post = async (path: string, body: object) => {
    const headers = { ...credentialHeaders(application), 'content-type': 'application/json' }
    const response = await fetch(`${server.url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const answer: { data?: { requestId: string }; error?: { code: string } } = JSON.parse(
      await response.text(),
    )
    return { status: response.status, requestId: answer.data?.requestId ?? '', code: answer.error?.code }
  }
  return {
    otpd,
    env: { OTPD_CONFIG: configFile, OTPD_DATA_DIR: dataDir },
    codes,
    send: (phone: string, clientIp?: string) =>
      post('/v1/otp/send', { phone, ...(clientIp && { clientIp }) }),
    verify: (requestId: string, code: string) => post('/v1/otp/verify', { requestId, code }),
    log: server.log,
    async stop() {
      expect(await server.stop()).toBe(0)
      await gateway.stop()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

const german = (n: number) => `+4915${String(100_000_000 + n * 7_654_321).slice(-9)}`

describe('a server with a provider and no other setting', () => {
  let shop: Shop
  beforeAll(async () => void (shop = await startShop(true)), 300_000)
  afterAll(() => shop?.stop())

  test.each([
    ['told', (n: number) => `198.51.${n % 200}.7`],
    ['not told', () => undefined],
  ] as const)('refuses no German customer of its first day (clientIp %s)', async (told, clientIp) => {
    const statuses: number[] = []
    for (let n = 0; n < 150; n++) {
      const phone = german(n + (told === 'told' ? 0 : 1_000))
      const sent = await shop.send(phone, clientIp(n))
      statuses.push(sent.status)
      // Six of ten people enter their code.
      if (n % 10 < 6) statuses.push((await shop.verify(sent.requestId, shop.codes.get(phone) ?? '')).status)
    }
    expect(statuses.filter((status) => status !== 201 && status !== 200)).toEqual([])
  })

  test('stops consecutive numbers of a country without customers', async () => {
    let left = 0
    for (let n = 0; n < 300; n++) {
      const { status, code } = await shop.send(`+25261${2_000_000 + n}`)
      if (status === 201) left++
      else expect([status, code]).toEqual([403, 'DESTINATION_BLOCKED'])
    }
    expect(left).toBeLessThanOrEqual(110)
    // The operator of many developers must see whose traffic it is.
    expect(shop.log()).toMatch(
      /more messages than usual are not verified[^\n]*"developerId":"dev_\w{26}","appId":"app_\w{26}","country":"SO"/,
    )
    expect([...shop.codes.keys()].filter((phone) => phone.startsWith('+252'))).toHaveLength(left)
    expect((await shop.send(german(5_000))).status).toBe(201)
  })

  test('sends nothing to numbers that earn by the message, and no phone number enters the log', async () => {
    for (const phone of [
      '+19005550123',
      '+979123456789',
      '+881612345678',
      '+882161234567',
      '+447012345678',
    ]) {
      expect(await shop.send(phone)).toMatchObject({ status: 403, code: 'DESTINATION_BLOCKED' })
      expect(shop.codes.has(phone)).toBe(false)
    }
    expect(shop.log()).not.toMatch(/\+?49151\d{5}|25261\d{5}/)
  })

  test('sends at most 5 codes to one phone in ten minutes', async () => {
    const statuses = []
    for (let n = 0; n < 7; n++) statuses.push((await shop.send('+4915799988877')).status)
    expect(statuses).toEqual([201, 201, 201, 201, 201, 429, 429])
  })

  test('explains each rule in one line of `otpd guard status`', async () => {
    const { stdout } = await shop.otpd(['guard', 'status', '--json'], { env: shop.env })
    const { data } = JSON.parse(stdout)
    expect(data.mode).toBe('enforce')
    const blocked = Object.fromEntries(
      data.rules.map((rule: { rule: string; blocked: number }) => [rule.rule, rule.blocked]),
    )
    expect(blocked).toMatchObject({ NUMBER_TYPE: 5, PREFIX_UNVERIFIED: 246, NETWORK_UNVERIFIED: 0 })
  })
})

test('a newcomer without a provider meets no refusal', async () => {
  const shop = await startShop(false)
  const statuses = new Set<number>()
  for (let n = 0; n < 60; n++)
    statuses.add((await shop.send(n % 2 ? `+25261${2_000_000 + n}` : '+491511234567')).status)
  expect([...statuses]).toEqual([201])
  await shop.stop()
}, 300_000)
