import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../helpers/binary.ts'
import { runCommand } from '../helpers/run-command.ts'
import { breakRequests, lockDatabase } from '../helpers/broken-database.ts'
import { startTwilioShop, type TwilioAnswer, type TwilioShop } from '../helpers/twilio-shop.ts'

let shop: TwilioShop
beforeAll(async () => {
  shop = await startTwilioShop()
})
afterAll(() => shop.stop())

/** Requires the four members of Twilio's errors and no other. */
function expectError({ status, error, text }: TwilioAnswer, expected: [number, number, string]) {
  expect([status, error.code, error.message]).toEqual(expected)
  const [, code] = expected
  const more_info = `https://www.twilio.com/docs/errors/${code}`
  expect(JSON.parse(text)).toEqual({ code, message: expected[2], more_info, status })
}

const invalid = (name = ''): [number, number, string] => [
  400,
  60200,
  `Invalid parameter${name === '' ? '' : ` \`${name}\``}${name === 'Channel' ? ': use sms, call, whatsapp or auto' : ''}`,
]
const service = () => `/v2/Services/${shop.live.serviceSid}`

test('what only begins like its paths is unknown to the API', async () => {
  for (const path of ['/v2', '/v3', '/v20/Services', '/V2/Services']) {
    const response = await fetch(shop.server.url + path)
    const { error } = (await response.json()) as { error: { reason: string } }
    expect([path, response.status, error.reason]).toEqual([path, 404, 'ROUTE_NOT_FOUND'])
  }
})

describe('without the façade', () => {
  test('its paths are unknown to the API', async () => {
    const server = await startServer()
    expect(server.log()).not.toContain('compat')
    for (const path of ['/v2/Services', '/v2/Services/VA1/Verifications', '/v3/x'])
      for (const method of ['GET', 'POST']) {
        const response = await fetch(server.url + path, { method })
        const { error } = (await response.json()) as { error: { reason: string } }
        expect([response.status, error.reason]).toEqual([404, 'ROUTE_NOT_FOUND'])
      }
    await server.stop()
  })

  test('an unknown word is refused, and the known ones are in the ready line', async () => {
    const home = mkdtempSync(join(tmpdir(), 'otpd-compat-'))
    const { exitCode, stderr } = await runCommand(home, ['config', 'check', '--compat', 'vonage'])
    expect(exitCode).not.toBe(0)
    expect(stderr).toContain('--compat: "vonage" is not a known word.')
    rmSync(home, { recursive: true })
    const [ready = ''] = shop.server.log().split('\n')
    expect(JSON.parse(ready)).toMatchObject({ msg: 'ready', compat: ['twilio-verify'] })
  })
})

describe('a caller', () => {
  test.each([
    '',
    'Bearer x',
    'Basic x',
    `Basic ${btoa('AC:x')}`,
    `Basic ${btoa(`AC${'0'.repeat(32)}:${'0'.repeat(96)}`)}`,
  ])('with the credentials %p is refused before anything else', async (authorization) => {
    const headers = { authorization }
    for (const [method, path, fields] of [
      ['GET', '/v2/Services', undefined],
      ['GET', '/v2/nothing?a=%', undefined],
      ['PUT', '/v3/x', 'a=1'],
      ['POST', `${service()}/Verifications`, 'x'.repeat(70_000)],
    ] as const) {
      const answer = await shop.call(method, path, fields, { as: null, headers })
      expectError(answer, [401, 20003, 'Authenticate'])
      expect(answer.headers.get('www-authenticate')).toBe('Basic realm="otpd"')
    }
  })

  test('needs the account, the secret and the key of one application', async () => {
    const { live, test: other } = shop
    const mixed = live.authToken.slice(0, 48) + other.authToken.slice(48)
    for (const as of [
      { ...live, accountSid: other.accountSid },
      { ...live, authToken: other.authToken },
      { ...live, authToken: mixed },
      { ...other, authToken: mixed },
      { ...live, authToken: live.authToken.toUpperCase() },
    ])
      expectError(await shop.call('GET', '/v2/Services', undefined, { as }), [401, 20003, 'Authenticate'])
  })

  test('may use a key sid, and upper case', async () => {
    const { live } = shop
    for (const accountSid of [`SK${live.accountSid.slice(2)}`, `AC${live.accountSid.slice(2).toUpperCase()}`])
      expect((await shop.call('GET', service(), undefined, { as: { ...live, accountSid } })).status).toBe(200)
  })

  test('is refused at once after a rotation of either secret, and while the application is disabled', async () => {
    for (const type of ['secret', 'api']) {
      const as = await shop.createAccount(`rotated-${type}`, 'test')
      const read = () => shop.call('GET', `/v2/Services/${as.serviceSid}`, undefined, { as })
      expect((await read()).status).toBe(200)
      await shop.otpd(['app', 'disable', as.id, '--yes'])
      expectError(await read(), [403, 20005, 'Account not active'])
      await shop.otpd(['app', 'enable', as.id])
      expect((await read()).status).toBe(200)
      await shop.otpd(['rotate', as.id, type, '--yes'])
      expectError(await read(), [401, 20003, 'Authenticate'])
      await shop.otpd(['app', 'delete', as.id, '--yes'])
    }
  })
})

describe('a create', () => {
  test.each([
    [{ To: '' }, 'To'],
    [{ To: '+1' }, 'To'],
    [{ To: 'ada@example.com' }, 'To'],
    [{ Channel: '' }, 'Channel'],
    ...['email', 'sna', 'rbm', 'telegram', 'voice', 'constructor'].map((Channel) => [{ Channel }, 'Channel']),
    [{ Locale: 'english please' }, 'Locale'],
    [{ DeviceIp: '300.1.1.1' }, 'DeviceIp'],
    ...['x', '[]', '{"a": 1}', '{"a b": "c"}', '{"a": "1", "a": "2"}', '{"a": "\\u0000"}'].map((Tags) => [
      { Tags },
      'Tags',
    ]),
    [
      { Tags: JSON.stringify(Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`k${i}`, '']))) },
      'Tags',
    ],
    [{ AppHash: 'FA+9qCX9VSu' }, 'AppHash'],
    [{ EnableSnaClientToken: 'true' }, 'EnableSnaClientToken'],
    [{ SendDigits: '1', Channel: 'call' }, 'SendDigits'],
    ...['CustomFriendlyName', 'CustomMessage', 'Amount', 'Payee'].map((name) => [{ [name]: 'x' }, name]),
    ...['TemplateCustomSubstitutions', 'Templates'].map((name) => [{ [name]: 'x' }, name]),
    [{ Code: '1' }, 'Code'],
    [{ Secret: 'x' }, ''],
  ] as Array<[Record<string, string>, string]>)('with %j is refused', async (fields, name) => {
    expectError(await shop.create(shop.newPhone(), fields), invalid(name))
  })

  test('with a code of its own is not allowed', async () => {
    expectError(await shop.create(shop.newPhone(), { CustomCode: '1234' }), [
      403,
      60204,
      'Custom code not allowed',
    ])
  })

  test('with a repeated field is refused', async () => {
    const fields = 'To=%2B14155550132&To=%2B14155550132&Channel=sms'
    expectError(await shop.call('POST', `${service()}/Verifications`, fields), invalid('To'))
  })

  test('takes what it can, and keeps it with the request', async () => {
    const phone = shop.newPhone()
    const { status, body } = await shop.create(phone, {
      Channel: 'auto',
      Locale: 'de',
      DeviceIp: '203.0.113.9',
      Tags: '{"order": "7"}',
      RiskCheck: 'enable',
      EnableSnaClientToken: 'false',
      Amount: '',
    })
    expect([status, body.channel]).toEqual([201, 'sms'])
    const ignored = await shop.create(shop.newPhone(), {
      RiskCheck: 'disable',
      RateLimits: '{"end_user_ip": "203.0.113.9"}',
      ChannelConfiguration: '{"whatsapp": {"enabled": false}}',
      TemplateSid: `HJ${'0'.repeat(32)}`,
      SendDigits: '1',
    })
    expect([ignored.status, ignored.headers.get('otpd-ignored')]).toEqual([
      201,
      'RiskCheck, RateLimits, ChannelConfiguration, TemplateSid, SendDigits',
    ])
    const { otpd, live } = shop
    await otpd(['app', 'update', live.id, '--android-hash', 'FA+9qCX9VSu'])
    expect((await shop.create(shop.newPhone(), { AppHash: 'FA+9qCX9VSu' })).status).toBe(201)
  })

  test('may name the character set of its form', async () => {
    const type = 'application/x-www-form-urlencoded; charset=UTF-8'
    const fields = new URLSearchParams({ To: shop.newPhone(), Channel: 'sms' }).toString()
    const headers = { 'content-type': type }
    expect((await shop.call('POST', `${service()}/Verifications`, fields, { headers })).status).toBe(201)
  })
})

describe('a check', () => {
  test.each(['', '123', '12345678901', '12 456', '１２３４５６'])(
    'with the code %p is refused, and costs no attempt',
    async (Code) => {
      const phone = shop.newPhone()
      await shop.create(phone)
      for (let count = 0; count < 6; count++)
        expectError(await shop.check({ To: phone, Code }), invalid('Code'))
      expect((await shop.check({ To: phone, Code: shop.codeOf(phone) })).body.valid).toBe(true)
    },
  )

  test('with a code of another form is wrong, and costs an attempt', async () => {
    const phone = shop.newPhone()
    await shop.create(phone)
    for (const Code of ['1234', 'abcdef', '1234567890', 'Zz09', '00000'])
      expect((await shop.check({ To: phone, Code })).body).toMatchObject({ status: 'pending', valid: false })
    expectError(await shop.check({ To: phone, Code: '1234' }), [429, 60202, 'Max check attempts reached'])
  })

  test('needs a target; the sid counts where both are given', async () => {
    expectError(await shop.check({ Code: '123456' }), invalid('To'))
    expectError(await shop.check({ Code: '123456', To: 'x' }), invalid('To'))
    expectError(await shop.check({ Code: '123456', To: '+14155550132', Amount: '1' }), invalid('Amount'))
    const [phone, other] = [shop.newPhone(), shop.newPhone()]
    const { sid } = (await shop.create(phone)).body
    await shop.create(other)
    const { body } = await shop.check({ VerificationSid: sid, To: other, Code: shop.codeOf(phone) })
    expect([body.sid, body.valid]).toEqual([sid, true])
    const missing = `The requested resource ${service().slice(3)}/VerificationCheck was not found`
    for (const VerificationSid of ['VE1', `VE${'0'.repeat(32)}`, sid.replace('VE', 'VL')])
      expectError(await shop.check({ VerificationSid, Code: '123456' }), [404, 20404, missing])
  })
})

describe('an update', () => {
  test.each([{ Status: 'approved' }, { Status: 'pending' }, { Status: '' }, {}])(
    'to %j is refused',
    async (fields) => {
      const phone = shop.newPhone()
      await shop.create(phone)
      expectError(await shop.update(phone, fields as Record<string, string>), invalid('Status'))
    },
  )
})

describe('a request', () => {
  test('of another form gets an error of the façade on every path', async () => {
    const path = `${service()}/Verifications`
    const json = { headers: { 'content-type': 'application/json' } }
    expect((await shop.call('POST', path, '{"To": "x"}', json)).error.code).toBe(20415)
    expect(
      (await shop.call('POST', path, 'To=x', { headers: { 'content-encoding': 'gzip' } })).error.code,
    ).toBe(20415)
    expectError(await shop.call('POST', path, 'x'.repeat(70_000)), [413, 20413, 'Payload too large'])
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const answer = await shop.call(method, path, undefined)
      expectError(answer, [405, 20004, 'Method not allowed'])
      expect(answer.headers.get('allow')).toBe('POST')
    }
    expectError(await shop.call('GET', `${path}?a=1&a=2`, undefined), invalid())
    for (const odd of [
      '/v2/Services/a//b',
      '/v2/a/b/c/d/e/f/g/h/i/j',
      '/v2/%5C',
      `${path}/%ff`,
      `${path}/nobody`,
    ])
      expect((await shop.call('GET', odd, undefined)).error.code).toBe(20404)
  })

  test('may have the type of a form without a body', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await shop.call('GET', service(), undefined, { headers })).status).toBe(200)
    expect((await shop.call('DELETE', service(), undefined, { headers })).error.code).toBe(20403)
  })

  test('that reads has no body for HEAD', async () => {
    const { status, text } = await shop.call('HEAD', service(), undefined)
    expect([status, text]).toEqual([200, ''])
  })
})

describe('a failure of the server', () => {
  test('while a call with the same idempotency key is under way, is a conflict', async () => {
    const headers = { 'idempotency-key': 'slow' }
    const phone = shop.newPhone()
    const answerGateway = shop.holdGateway()
    const first = shop.create(phone, {}, shop.live, headers)
    await shop.gatewayCalled()
    const second = await shop.create(phone, {}, shop.live, headers)
    expectError(second, [409, 20409, 'A call with this Idempotency-Key is in progress'])
    answerGateway()
    expect((await first).status).toBe(201)
  })

  test('that cannot store or read has the form of the façade', async () => {
    const broken = await startTwilioShop()
    const phone = broken.newPhone()
    const { sid } = (await broken.create(phone)).body
    const unlock = lockDatabase(broken.dataDir)
    const unavailable = await broken.create(broken.newPhone())
    unlock()
    expectError(unavailable, [503, 20503, 'Service Unavailable'])
    expect(unavailable.headers.get('retry-after')).toBe('1')
    breakRequests(broken.dataDir)
    const answer = await broken.check({ VerificationSid: sid, Code: broken.codeOf(phone) })
    expectError(answer, [500, 20500, 'Internal Server Error'])
    await broken.stop()
  }, 60_000)
})

describe('limits', () => {
  test('of the application, the phone and the country', async () => {
    const settings = `[limits]\nsendPerMinute = 8\nverifyPerMinute = 2\n[guard]\nmode = "enforce"\ncountries = ["US"]\n`
    const limited = await startTwilioShop({ settings })
    expectError(await limited.create('+4915123456789'), [403, 60410, 'Verification delivery attempt blocked'])
    expect((await limited.fetch('+4915123456789')).body.status).toBe('failed')
    const phone = limited.newPhone()
    expect((await limited.create(phone)).headers.get('ratelimit')).toStartWith('"otp-send";r=6;')
    for (let count = 0; count < 3; count++) await limited.create(phone)
    await limited.update(phone)
    expect((await limited.create(phone)).status).toBe(201)
    const overPhone = await limited.create(phone)
    expectError(overPhone, [429, 60203, 'Max send attempts reached'])
    expect(Number(overPhone.headers.get('retry-after'))).toBeGreaterThan(60)
    expect((await limited.create(limited.newPhone())).status).toBe(201)
    expect((await limited.create(limited.newPhone())).status).toBe(201)
    const overRate = await limited.create(limited.newPhone())
    expectError(overRate, [429, 20429, 'Too Many Requests'])
    expect(Number(overRate.headers.get('retry-after'))).toBeGreaterThan(0)
    for (const expected of [200, 404, 429]) {
      const To = expected === 200 ? phone : limited.newPhone()
      expect((await limited.check({ To, Code: '000000' })).status).toBe(expected)
    }
    await limited.stop()
  })

  test('of wrong codes for a phone, over all its verifications', async () => {
    const settings =
      '[limits]\nsendPerMinute = 0\nverifyPerMinute = 0\nphoneSendBudget = "off"\nphoneCheckBudget = 6\n'
    const limited = await startTwilioShop({ settings })
    const phone = limited.newPhone()
    await limited.create(phone)
    for (let distance = 1; distance <= 5; distance++)
      await limited.check({ To: phone, Code: limited.wrongCodeOf(phone, distance) })
    expect((await limited.create(phone)).status).toBe(201)
    expect((await limited.check({ To: phone, Code: limited.wrongCodeOf(phone) })).status).toBe(200)
    const answer = await limited.check({ To: phone, Code: limited.codeOf(phone) })
    expectError(answer, [429, 60202, 'Max check attempts reached'])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(3000)
    await limited.stop()
  })
})
