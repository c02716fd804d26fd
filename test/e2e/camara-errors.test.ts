import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { correlator, startCamaraShop, type CamaraAnswer, type CamaraShop } from '../helpers/camara-shop.ts'
import { startServer } from '../helpers/binary.ts'
import { breakRequests, lockDatabase } from '../helpers/broken-database.ts'

let shop: CamaraShop
beforeAll(async () => {
  shop = await startCamaraShop()
})
afterAll(() => shop.stop())

const api = '/one-time-password-sms/v1'
const prefix = 'ONE_TIME_PASSWORD_SMS.'

/** Requires the three members of CAMARA's errors and no other, and the correlator. */
function expectError({ status, error, headers }: CamaraAnswer, expected: [number, string]) {
  expect([status, error.code]).toEqual(expected)
  expect(Object.keys(error)).toEqual(['status', 'code', 'message'])
  expect(error.status).toBe(status)
  expect(error.message.length).toBeGreaterThan(10)
  expect(headers.get('x-correlator')).toBe(correlator)
  expect(headers.get('content-type')).toBe('application/json')
}

test('without the façade its paths are unknown to the API', async () => {
  const server = await startServer()
  for (const path of [`${api}/send-code`, '/camara/token', '/camara/.well-known/openid-configuration'])
    for (const method of ['GET', 'POST']) {
      const response = await fetch(server.url + path, { method })
      const { error } = (await response.json()) as { error: { reason: string } }
      expect([response.status, error.reason]).toEqual([404, 'ROUTE_NOT_FOUND'])
    }
  await server.stop()
})

describe('the correlator', () => {
  test.each(['', 'a', 'Aa0-_:;./<>{}', 'x'.repeat(256)])('%p is sent back', async (value) => {
    const { status, headers } = await shop.sendCode(shop.newPhone(), undefined, {
      headers: { 'x-correlator': value },
    })
    expect([status, headers.get('x-correlator')]).toEqual([200, value])
  })

  test.each(['a b', 'é', '"', 'x'.repeat(257), 'a,b'])(
    '%p is refused, and the id of the request sent instead',
    async (value) => {
      const { status, error, headers } = await shop.sendCode(shop.newPhone(), undefined, {
        headers: { 'x-correlator': value },
      })
      expect([status, error.code]).toEqual([400, 'INVALID_ARGUMENT'])
      expect(headers.get('x-correlator')).toMatch(/^req_/)
    },
  )

  test('is the id of the request where a call has none, also where no route is reached', async () => {
    for (const path of [`${api}/send-code`, '/camara/token', '/camara//x', `${api}/a/b/c/d/e/f/g/h`]) {
      const { headers } = await fetch(shop.server.url + path, { method: 'POST' })
      expect(headers.get('x-correlator')).toMatch(/^req_/)
      expect(headers.get('x-correlator')).toBe(headers.get('x-request-id'))
    }
  })
})

describe('a caller', () => {
  test.each(['', 'x', 'a'.repeat(600)])(
    'with the token %p is refused before anything else',
    async (token) => {
      for (const [method, path, body] of [
        ['POST', `${api}/send-code`, { phoneNumber: '+14155550132', message: '{{code}}' }],
        ['POST', `${api}/validate-code`, 'x'.repeat(70_000)],
        ['GET', `${api}/send-code`, undefined],
        ['GET', `${api}/nothing`, undefined],
        ['PUT', '/camara/nothing?a=1&a=2', undefined],
      ] as const) {
        const answer = await shop.call(method, path, body, { token })
        expectError(answer, [401, 'UNAUTHENTICATED'])
        expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="otpd"')
      }
    },
  )

  test.each(['Basic', 'Bearer', 'Bearer  ', 'bearer a b', 'Token x'])(
    'with the header %p is refused',
    async (authorization) => {
      const answer = await shop.sendCode(shop.newPhone(), undefined, {
        token: '',
        headers: { authorization },
      })
      expectError(answer, [401, 'UNAUTHENTICATED'])
    },
  )

  test('with a token that was changed is refused', async () => {
    const token = await shop.tokenOf(shop.live)
    for (const index of [0, 20, token.length - 1]) {
      const changed = token.slice(0, index) + (token[index] === 'A' ? 'B' : 'A') + token.slice(index + 1)
      const answer = await shop.sendCode(shop.newPhone(), undefined, { token: changed })
      expectError(answer, [401, 'UNAUTHENTICATED'])
    }
  })
})

describe('a token', () => {
  test.each([
    ['no credentials', { client_id: '', client_secret: '' }, 401, 'invalid_client'],
    ['an unknown client', { client_id: `client_live_${'0'.repeat(48)}` }, 401, 'invalid_client'],
    ['a secret of another form', { client_secret: 'x' }, 401, 'invalid_client'],
    ['a wrong secret', { client_secret: '0'.repeat(96) }, 401, 'invalid_client'],
    ['no grant type', { grant_type: '' }, 400, 'invalid_request'],
    ['another grant type', { grant_type: 'password' }, 400, 'unsupported_grant_type'],
    ['another scope', { scope: 'money:all' }, 400, 'invalid_scope'],
    ['two scopes', { scope: 'one-time-password-sms:send-validate openid' }, 400, 'invalid_scope'],
  ] as const)('is refused for %s', async (_, form, status, error) => {
    const answer = await shop.requestToken(shop.live, form)
    expect([answer.status, Object.keys(answer.body)]).toEqual([status, ['error', 'error_description']])
    expect(answer.body['error']).toBe(error)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    if (status === 401) expect(answer.headers.get('www-authenticate')).toBe('Basic realm="otpd"')
  })

  test('needs the client, the secret and the key of one application', async () => {
    const { live, test: other } = shop
    const mixed = live.authToken.slice(0, 48) + other.authToken.slice(48)
    for (const client_secret of [other.authToken, mixed, live.authToken.toUpperCase()])
      expect((await shop.requestToken(live, { client_secret })).status).toBe(401)
    expect((await shop.requestToken(live, { client_id: other.headers['x-client-id'] ?? '' })).status).toBe(
      401,
    )
    expect((await shop.requestToken(live, { client_id: live.id })).status).toBe(401)
  })

  test('is refused in the form of OAuth where the request is of another form', async () => {
    const url = `${shop.server.url}/camara/token`
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const basic = { authorization: `Basic ${btoa('a:b')}` }
    for (const [init, status, error] of [
      [{ method: 'GET' }, 405, 'invalid_request'],
      [
        { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } },
        415,
        'invalid_request',
      ],
      [{ method: 'POST', body: `a=${'x'.repeat(70_000)}`, headers: form }, 413, 'invalid_request'],
      [{ method: 'POST', body: 'a=1&a=2', headers: form }, 400, 'invalid_request'],
      [{ method: 'POST', body: 'client_secret=x', headers: { ...form, ...basic } }, 400, 'invalid_request'],
      [{ method: 'POST', body: 'grant_type=x', headers: { ...form, ...basic } }, 401, 'invalid_client'],
    ] as const) {
      const response = await fetch(url, init)
      expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([status, error])
    }
  })

  test('may be asked for with the grant type alone in the body', async () => {
    const { live, server } = shop
    const authorization = `Basic ${btoa(`${live.headers['x-client-id']}:${live.authToken}`)}`
    const body = new URLSearchParams({ grant_type: 'client_credentials' })
    const response = await fetch(`${server.url}/camara/token`, {
      method: 'POST',
      body,
      headers: { authorization },
    })
    expect(response.status).toBe(200)
  })
})

describe('a body', () => {
  const phoneNumber = '+14155550132'
  const message = '{{code}}'
  const authenticationId = 'ea0840f3-3663-4149-bd10-c7c6b8912105'
  test.each([
    ['/send-code', undefined],
    ['/send-code', '{'],
    ['/send-code', '[]'],
    ['/send-code', {}],
    ['/send-code', { message }],
    ['/send-code', { phoneNumber }],
    ['/send-code', { phoneNumber: '3301', message }],
    ['/send-code', { phoneNumber: '+1 415 555 0132', message }],
    ['/send-code', { phoneNumber: '+14155', message }],
    ['/send-code', { phoneNumber: 14155550132, message }],
    ['/send-code', { phoneNumber, message: 'hello' }],
    ['/send-code', { phoneNumber, message: '{{ code }}' }],
    ['/send-code', { phoneNumber, message: `{{code}}${'x'.repeat(153)}` }],
    ['/send-code', { phoneNumber, message: '{{code}}\0' }],
    ['/send-code', { phoneNumber, message, channel: 'sms' }],
    ['/validate-code', undefined],
    ['/validate-code', {}],
    ['/validate-code', { authenticationId }],
    ['/validate-code', { code: '123456' }],
    ['/validate-code', { authenticationId: '', code: '123456' }],
    ['/validate-code', { authenticationId: `${authenticationId}0`, code: '123456' }],
    ['/validate-code', { authenticationId, code: '' }],
    ['/validate-code', { authenticationId, code: 'thisCodeExceedsTenCharacters' }],
    ['/validate-code', { authenticationId, code: 123456 }],
  ])('of %s that is %j is refused', async (path, body) => {
    expectError(await shop.call('POST', api + path, body), [400, 'INVALID_ARGUMENT'])
  })

  test('may have 160 characters of text, of any alphabet', async () => {
    const text = `{{code}}${'😀'.repeat(152)}`
    expect((await shop.sendCode(shop.newPhone(), text)).status).toBe(200)
  })

  test('of another type, size or method gets an error of the façade', async () => {
    const path = `${api}/send-code`
    const form = { headers: { 'content-type': 'application/x-www-form-urlencoded' } }
    expectError(await shop.call('POST', path, 'a=1', form), [415, 'UNSUPPORTED_MEDIA_TYPE'])
    expectError(await shop.call('POST', path, 'x'.repeat(70_000)), [413, 'PAYLOAD_TOO_LARGE'])
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS']) {
      const answer = await shop.call(method, path, undefined)
      expectError(answer, [405, 'METHOD_NOT_ALLOWED'])
      expect(answer.headers.get('allow')).toBe('POST')
    }
    for (const odd of [`${api}/other`, '/one-time-password-sms/v2/send-code', '/camara/other'])
      expectError(await shop.call('POST', odd, {}), [404, 'NOT_FOUND'])
  })
})

describe('limits', () => {
  test('of the application, the phone and the country', async () => {
    const settings = `[limits]\nsendPerMinute = 7\nverifyPerMinute = 2\nphoneSendBudget = "enforce"\n[guard]\nmode = "enforce"\ncountries = ["US"]\n`
    const limited = await startCamaraShop({ settings })
    expectError(await limited.sendCode('+4915123456789'), [403, `${prefix}PHONE_NUMBER_BLOCKED`])
    const phone = limited.newPhone()
    const first = await limited.sendCode(phone)
    expect(first.headers.get('ratelimit')).toStartWith('"otp-send";r=5;')
    const sent = [first]
    for (let count = 0; count < 4; count++) sent.push(await limited.sendCode(phone))
    const living = sent.at(-1)?.body.authenticationId ?? ''
    const overPhone = await limited.sendCode(phone)
    expectError(overPhone, [403, `${prefix}MAX_OTP_CODES_EXCEEDED`])
    expect(Number(overPhone.headers.get('retry-after'))).toBeGreaterThan(60)
    expect((await limited.sendCode(limited.newPhone())).status).toBe(200)
    const overRate = await limited.sendCode(limited.newPhone())
    expectError(overRate, [429, 'TOO_MANY_REQUESTS'])
    expect(Number(overRate.headers.get('retry-after'))).toBeGreaterThan(0)
    expectError(await limited.validateCode(living, limited.wrongCodeOf(phone)), [400, `${prefix}INVALID_OTP`])
    expect((await limited.validateCode(living, limited.codeOf(phone))).status).toBe(204)
    expectError(await limited.validateCode(living, '1'), [429, 'TOO_MANY_REQUESTS'])
    await limited.stop()
  })

  test('of wrong codes for a phone, over all its codes', async () => {
    const settings =
      '[limits]\nsendPerMinute = 0\nverifyPerMinute = 0\nphoneSendBudget = "off"\nphoneCheckBudget = 6\n'
    const limited = await startCamaraShop({ settings })
    const phone = limited.newPhone()
    const wrong = async (count: number) => {
      const { authenticationId } = (await limited.sendCode(phone)).body
      for (let distance = 1; distance <= count; distance++)
        await limited.validateCode(authenticationId, limited.wrongCodeOf(phone, distance))
      return authenticationId
    }
    await wrong(5)
    const answer = await limited.validateCode(await wrong(1), limited.codeOf(phone))
    expectError(answer, [429, 'TOO_MANY_REQUESTS'])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(3000)
    await limited.stop()
  })
})

test('a phone that no provider reaches is not allowed', async () => {
  const unreachable = await startCamaraShop({ channels: 'voice' })
  expectError(await unreachable.sendCode(unreachable.newPhone()), [403, `${prefix}PHONE_NUMBER_NOT_ALLOWED`])
  await unreachable.stop()
})

test('what cannot be stored or read is an error of the façade', async () => {
  const broken = await startCamaraShop()
  const phone = broken.newPhone()
  const { authenticationId } = (await broken.sendCode(phone)).body
  const unlock = lockDatabase(broken.dataDir)
  const unavailable = await broken.sendCode(broken.newPhone())
  unlock()
  expectError(unavailable, [503, 'UNAVAILABLE'])
  expect(unavailable.headers.get('retry-after')).toBe('1')
  breakRequests(broken.dataDir)
  expectError(await broken.validateCode(authenticationId, broken.codeOf(phone)), [500, 'INTERNAL'])
  await broken.stop()
}, 60_000)
