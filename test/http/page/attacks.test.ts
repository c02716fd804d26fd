import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { sessionSendsMax } from '../../../src/domain/model/session.ts'
import { createOtpClient, guardOffEnv, type OtpClient } from '../../helpers/otp-client.ts'
import { createPageVisitor } from '../../helpers/page-visitor.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'
import { systemWorld } from '../../../src/world/system.ts'

// Attackers at the ready page who have a link of their own, or pass one on.

const sendPerMinute = 20
const verifyPerMinute = 20
const origin = 'https://shop.example'

type Session = { id: string; url: string; status: string; phone: string | null; requestId: string | null }

let service: TestService
let otp: OtpClient
let owner: TestDeveloper
let application: TestApplication
let phones = 0
const newPhone = () => `+1415555${4000 + phones++}`

beforeAll(async () => {
  const plans = { free: { ...unlimitedPlan, sendPerMinute, verifyPerMinute } }
  service = await createTestService({ plans, env: guardOffEnv })
  otp = createOtpClient(service)
  owner = await service.createDeveloper()
})
afterAll(() => service.dispose())
beforeEach(async () => {
  application = await service.createApplication(owner, { name: 'Shop' })
  await setUp({ enabled: true, returnOrigins: [origin] })
})

async function setUp(body: object) {
  const page = `/v1/applications/${application.id}/page`
  expect((await service.request('PATCH', page, { as: owner, body })).status).toBe(200)
}

const create = (body: object = {}) =>
  service.request<Session>('POST', '/v1/otp/sessions', {
    as: application,
    body: { returnUrl: `${origin}/back`, ...body },
  })
const get = async (id: string) =>
  (await service.request<Session>('GET', `/v1/otp/sessions/${id}`, { as: application })).data

/** Opens a new link in a new browser. */
async function visit(body: object = {}) {
  const { data } = await create(body)
  const visitor = createPageVisitor(service, data.url)
  const first = await visitor.get()
  return { ...data, visitor, first }
}
const readCode = async (id: string) => otp.getCode((await get(id)).requestId ?? '')

/** Calls of another user, who is charged to the same application. */
const isStillServed = async () => {
  const sent = await otp.send(application, { phone: newPhone() })
  const verified = await otp.verify(application, sent.data.requestId, await otp.getCode(sent.data.requestId))
  return [sent.status, verified.status]
}

test('one link cannot use up the codes that the application may send in a minute', async () => {
  const { id, visitor } = await visit()
  for (let count = 0; count < sendPerMinute + 5; count++) await visitor.post({ action: 'resend' })
  expect(await isStillServed()).toEqual([201, 200])
  await visitor.submit({ action: 'send', phone: newPhone() })
  service.clock.advance(61_000)
  for (let count = 0; count < 3; count++) {
    expect((await visitor.submit({ action: 'resend' })).notice).toBeUndefined()
    service.clock.advance(61_000)
  }
  for (let count = 0; count < sendPerMinute + 5; count++) await visitor.post({ action: 'resend' })
  expect(await isStillServed()).toEqual([201, 200])
  expect((await get(id)).status).toBe('sent')
})

test('one link cannot use up the checks that the application may make in a minute', async () => {
  const { id, visitor } = await visit()
  await visitor.submit({ action: 'send', phone: newPhone() })
  const code = await otp.getWrongCode((await get(id)).requestId ?? '')
  for (let count = 0; count < verifyPerMinute + 5; count++) await visitor.post({ action: 'verify', code })
  expect(await isStillServed()).toEqual([201, 200])
})

test('one link cannot use them up with forms that are posted at once either', async () => {
  const { id, visitor } = await visit()
  await visitor.submit({ action: 'send', phone: newPhone() })
  const code = await otp.getWrongCode((await get(id)).requestId ?? '')
  await Promise.all(
    Array.from({ length: verifyPerMinute + 5 }, () => visitor.post({ action: 'verify', code })),
  )
  expect(await isStillServed()).toEqual([201, 200])
})

test('one link posts 30 forms in a minute at most', async () => {
  const { visitor } = await visit()
  const post = () => visitor.submit({ action: 'send', phone: 'none' })
  for (let count = 0; count < 30; count++) expect((await post()).notice).toBe('Enter a valid phone number.')
  expect((await post()).notice).toBe('Too many attempts. Try again in 60 seconds.')
  service.clock.advance(60_000)
  expect((await post()).notice).toBe('Enter a valid phone number.')
})

test('one link sends to ten phones at most', async () => {
  const { id, visitor } = await visit()
  for (let count = 0; count < sessionSendsMax; count++) {
    await visitor.submit({ action: 'send', phone: newPhone() })
    service.clock.advance(5_000)
  }
  const { requestId } = await get(id)
  const refused = await visitor.submit({ action: 'send', phone: newPhone() })
  expect(refused.status).toBe(429)
  expect(refused.notice).toBe('Too many attempts. Try again in 15 minutes.')
  expect((await get(id)).requestId).toBe(requestId)
  await visitor.submit({ action: 'verify', code: await readCode(id) })
  expect((await get(id)).status).toBe('verified')
})

test('one link sends ten messages at most, with those that repeat a code', async () => {
  const { id, visitor } = await visit()
  for (let count = 0; count < sessionSendsMax / 2; count++) {
    await visitor.submit({ action: 'send', phone: newPhone() })
    service.clock.advance(31_000)
    expect((await visitor.submit({ action: 'resend' })).notice).toBeUndefined()
    service.clock.advance(31_000)
  }
  const refused = await visitor.submit({ action: 'resend' })
  expect(refused.notice).toBe('Too many attempts. Try again in 10 minutes.')
  const { data } = await otp.get(owner, (await get(id)).requestId ?? '')
  expect(data).toMatchObject({ resends: 1, status: 'pending' })
})

test('pages of one link leave turns of the event loop to others', async () => {
  const { url } = (await create()).data
  const { sessions } = service.services.otp
  const { open } = sessions
  let opened = 0
  sessions.open = (session, deviceId) => {
    opened++
    return open(session, deviceId)
  }
  const { nextTurn } = systemWorld.timers
  try {
    const pages = Array.from({ length: 60 }, () => createPageVisitor(service, url).get())
    await nextTurn()
    await nextTurn()
    expect(opened).toBeLessThanOrEqual(9)
    const statuses = (await Promise.all(pages)).map(({ status }) => status)
    expect(statuses).toEqual(pages.map(() => 200))
  } finally {
    sessions.open = open
  }
})

test('an application creates ten sessions for each code that it may send in a minute', async () => {
  for (let count = 0; count < 10 * sendPerMinute; count++) expect((await create()).status).toBe(201)
  const refused = await create()
  expect(refused).toMatchObject({ status: 429, error: { code: 'RATE_LIMITED', reason: 'SESSION_RATE' } })
  expect(refused.error?.message).toStartWith(
    'This application may create 200 sessions per minute (plan free).',
  )
  service.clock.advance(60_000)
  expect((await create()).headers.get('ratelimit')).toBe('"sessions";r=199;t=60')
})

test('a code is verified only in the browser that sent it', async () => {
  const { id, url, visitor: attacker } = await visit({ state: 'of the attacker' })
  await attacker.submit({ action: 'send', phone: newPhone() })
  const code = await readCode(id)
  // The owner of the phone opens the link, and enters the code that arrived.
  const victim = createPageVisitor(service, url)
  const shown = await victim.get()
  expect(shown.text).toContain('name="phone"')
  expect(shown.text).not.toContain('name="code"')
  await victim.post({ action: 'verify', code })
  await victim.post({ action: 'resend' })
  expect((await get(id)).status).toBe('sent')
  expect((await otp.get(owner, (await get(id)).requestId ?? '')).data).toMatchObject({
    attempts: 0,
    resends: 0,
  })
})

test('a browser that has not verified the phone does not learn the state', async () => {
  const { id, url, visitor: attacker } = await visit({ state: 'random' })
  const victim = createPageVisitor(service, url)
  await victim.get()
  await victim.submit({ action: 'send', phone: newPhone() })
  await victim.post({ action: 'verify', code: await readCode(id) })
  expect((await attacker.get()).location).toBe(`${origin}/back?session=${id}`)
  expect((await createPageVisitor(service, url).get()).location).toBe(`${origin}/back?session=${id}`)
  expect((await victim.get()).location).toBe(`${origin}/back?session=${id}&state=random`)
})

test('is set up with plain origins to return to', async () => {
  const path = `/v1/applications/${application.id}/page`
  const set = (...returnOrigins: string[]) =>
    service.request<{ returnOrigins: string[] }>('PATCH', path, { as: owner, body: { returnOrigins } })
  const faults = [
    'https://*.example',
    'https://shop.example;sandbox',
    'https://shop.example,https://other.example',
    "https://'self'",
    'https://shop.example/path',
    'https://user@shop.example',
    'https://shop.example?',
    'https://',
    'http://shop.example',
    'ftp://shop.example',
    'javascript:alert(1)',
    'null',
  ]
  for (const fault of faults)
    expect([fault, (await set(origin, fault)).error]).toMatchObject([
      fault,
      { code: 'INVALID_ARGUMENT', details: [{ path: 'returnOrigins.1' }] },
    ])
  const good = [
    'HTTPS://Shop.Example:443/',
    'https://a_b.example:8443',
    'http://localhost:3000',
    'https://[2001:db8::1]',
  ]
  expect((await set(...good)).data.returnOrigins).toEqual([
    'https://shop.example',
    'https://a_b.example:8443',
    'http://localhost:3000',
    'https://[2001:db8::1]',
  ])
  await set(origin)
})

test('returns to no other origin, however its URL is written', async () => {
  const inside = [
    `${origin}\\@evil.example/`,
    `${origin}:443/`,
    'https:shop.example/',
    'HTTPS://SHOP.EXAMPLE//evil.example',
    'https://shop\t.example/\n',
    `${origin}/#@evil.example`,
    `${origin}/?returnUrl=https://evil.example`,
    'https://ｓｈｏｐ.example/',
  ]
  for (const returnUrl of inside) {
    const { visitor } = await visit({ returnUrl })
    await visitor.post({ action: 'cancel' })
    expect(new URL((await visitor.get()).location ?? '').origin).toBe(origin)
  }
  const outside = [
    `${origin}@evil.example/`,
    'https://shop.example.evil.example/',
    'https://shop.example./',
    'https://shop.example%2eevil.example/',
    'https://evil.example\\@shop.example/',
    '//shop.example/',
    'http://shop.example/',
    'https://shop.example:444/',
    'https://shоp.example/', // a Cyrillic letter
    `blob:${origin}/f00d`,
    `filesystem:${origin}/temporary/x`,
    'javascript://shop.example/%0aalert(1)',
    'data:text/html,shop.example',
    'https://user:password@shop.example/',
  ]
  for (const returnUrl of outside)
    expect(await create({ returnUrl })).toMatchObject({ status: 400, error: { code: 'INVALID_ARGUMENT' } })
})

test('shows names and states as text', async () => {
  const hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>\''
  await setUp({ name: hostile })
  const { id, visitor, first } = await visit({ state: hostile })
  expect(first.text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;')
  expect(first.text.match(/<script/g)).toHaveLength(1)
  expect(first.text).not.toContain('<img')
  service.clock.advance(15 * 60_000)
  const ended = await visitor.get()
  expect(ended.text).not.toContain('<img')
  const href = /href="([^"]+)"/.exec(ended.text)?.[1]?.replaceAll('&amp;', '&')
  expect(new URL(href ?? '').searchParams.get('state')).toBe(hostile)
  expect(new URL(href ?? '').searchParams.get('session')).toBe(id)
  const refused = await service.request('PATCH', `/v1/applications/${application.id}/page`, {
    as: owner,
    body: { colour: 'red;}body{display:none' },
  })
  expect(refused.status).toBe(400)
  for (const logo of [
    'data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=',
    'data:image/png;base64,PHN2Zz48L3N2Zz4=',
    'data:image/png;base64,iVBORw0KGgo=" onerror="alert(1)',
    'https://evil.example/logo.png',
  ]) {
    const answer = await service.request('PATCH', `/v1/applications/${application.id}/page`, {
      as: owner,
      body: { logo },
    })
    expect(answer.error).toMatchObject({ code: 'INVALID_ARGUMENT', details: [{ path: 'logo' }] })
  }
})

test('does nothing for a form of a neighbouring host that has planted a cookie of its own', async () => {
  const own = await visit()
  const { id, url } = await visit()
  const planted = createPageVisitor(service, url, { cookie: own.visitor.cookie ?? '' })
  const token = (await planted.get()).text.match(/name="token" value="([^"]+)"/)?.[1] ?? ''
  const headers = [
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { origin: 'null' },
    { origin: 'https://evil.otpd.test' },
  ]
  for (const header of headers) {
    const answer = await planted.post({ token, action: 'send', phone: newPhone() }, header)
    expect(answer.status).toBe(403)
  }
  // The token of one link is of no use at another.
  await planted.post({ token: own.visitor.token, action: 'send', phone: newPhone() })
  expect((await get(id)).requestId).toBeNull()
})

test('a request that was made on the page says so', async () => {
  const { id, visitor } = await visit()
  await visitor.submit({ action: 'send', phone: newPhone() })
  const { data } = await otp.get(owner, (await get(id)).requestId ?? '')
  expect(data).toMatchObject({ metadata: { sessionId: id } })
})
