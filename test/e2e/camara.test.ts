import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  allowInsecureRequests,
  clientCredentialsGrant,
  ClientSecretBasic,
  ClientSecretPost,
  discovery,
} from 'openid-client'
import { hexToId } from '../../src/shared/sids.ts'
import { correlator, startCamaraShop, type CamaraAnswer, type CamaraShop } from '../helpers/camara-shop.ts'

let shop: CamaraShop
beforeAll(async () => {
  shop = await startCamaraShop()
})
afterAll(() => shop.stop())

const prefix = 'ONE_TIME_PASSWORD_SMS.'

/** Requires the three members of CAMARA's errors and no other, and the correlator. */
function expectError({ status, error, headers }: CamaraAnswer, expected: [number, string]) {
  expect([status, error.code]).toEqual(expected)
  expect(Object.keys(error)).toEqual(['status', 'code', 'message'])
  expect(error.status).toBe(status)
  expect(headers.get('x-correlator')).toBe(correlator)
  expect(headers.get('content-type')).toBe('application/json')
}

describe('a token', () => {
  test.each([
    ['the body', ClientSecretPost],
    ['the header', ClientSecretBasic],
  ])('is granted to an OAuth library that sends its secret in %s', async (_, method) => {
    const { server, live } = shop
    const issuer = new URL(`${server.url}/camara`)
    const authentication = method(live.authToken)
    const options = { execute: [allowInsecureRequests] }
    const config = await discovery(
      issuer,
      live.headers['x-client-id'] ?? '',
      undefined,
      authentication,
      options,
    )
    const scope = 'one-time-password-sms:send-validate'
    const grant = await clientCredentialsGrant(config, { scope })
    expect([grant.token_type, grant.expires_in, grant.scope]).toEqual(['bearer', 300, scope])
    expect(grant.access_token.length).toBeLessThanOrEqual(512)
    const sent = await shop.sendCode(shop.newPhone(), undefined, { token: grant.access_token })
    expect(sent.status).toBe(200)
    expect(clientCredentialsGrant(config, { scope: 'money:all' })).rejects.toMatchObject({
      error: 'invalid_scope',
    })
  })

  test('is described by the discovery document', async () => {
    const { url } = shop.server
    const response = await fetch(`${url}/camara/.well-known/openid-configuration`)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toEqual({
      issuer: `${url}/camara`,
      token_endpoint: `${url}/camara/token`,
      grant_types_supported: ['client_credentials'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      scopes_supported: ['one-time-password-sms:send-validate'],
      response_types_supported: [],
    })
  })

  test('ends after 300 seconds, and must not be stored', async () => {
    const { status, headers, body } = await shop.requestToken()
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(Object.keys(body)).toEqual(['access_token', 'token_type', 'expires_in', 'scope'])
    const token = body['access_token'] ?? ''
    const use = () => shop.sendCode(shop.newPhone(), undefined, { token })
    shop.advance(299_000)
    expect((await use()).status).toBe(200)
    shop.advance(2_000)
    expectError(await use(), [401, 'UNAUTHENTICATED'])
  })

  test('ends at once with a rotation of either secret, and with the application', async () => {
    for (const type of ['secret', 'api']) {
      const as = await shop.createAccount(`rotated-${type}`, 'test')
      const token = await shop.tokenOf(as)
      const use = () => shop.sendCode('+14155550132', undefined, { token })
      expect((await use()).status).toBe(200)
      await shop.otpd(['app', 'disable', as.id, '--yes'])
      expectError(await use(), [403, 'PERMISSION_DENIED'])
      expect((await shop.requestToken(as)).body['error']).toBe('invalid_client')
      await shop.otpd(['app', 'enable', as.id])
      expect((await use()).status).toBe(200)
      await shop.otpd(['rotate', as.id, type === 'api' ? 'webhook-secret' : type, '--yes'])
      expect((await use()).status).toBe(type === 'api' ? 200 : 401)
      await shop.otpd(['rotate', as.id, type, '--yes'])
      expectError(await use(), [401, 'UNAUTHENTICATED'])
      expect((await shop.requestToken(as)).status).toBe(401)
      await shop.otpd(['app', 'delete', as.id, '--yes'])
      expectError(await use(), [401, 'UNAUTHENTICATED'])
    }
  })

  test('is nothing that the other ways in accept', async () => {
    const token = await shop.tokenOf(shop.live)
    const { id } = shop.live
    for (const headers of [
      { 'x-client-id': id, 'x-client-secret': token, 'x-api-key': token },
      { authorization: `Bearer ${token}` },
    ]) {
      const response = await fetch(`${shop.server.url}/v1/otp/otp_01h455vb4pex5vsknk084sn02q`, { headers })
      expect(response.status).toBe(401)
    }
  })
})

describe('a code', () => {
  test('is sent with the text of the caller, and validated once', async () => {
    const phone = shop.newPhone()
    const sent = await shop.sendCode(phone, 'Cool App: {{code}}, again {{code}}. Ünïcode $& ok')
    expect(sent.status).toBe(200)
    expect(sent.headers.get('x-correlator')).toBe(correlator)
    expect(Object.keys(sent.body)).toEqual(['authenticationId'])
    const { authenticationId } = sent.body
    expect(authenticationId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/)
    const code = shop.codeOf(phone)
    expect(shop.textOf(phone)).toBe(`Cool App: ${code}, again ${code}. Ünïcode $& ok`)
    const validated = await shop.validateCode(authenticationId.toUpperCase(), code)
    expect([validated.status, validated.text]).toEqual([204, ''])
    expect(validated.headers.get('x-correlator')).toBe(correlator)
    expectError(await shop.validateCode(authenticationId, code), [400, `${prefix}VERIFICATION_EXPIRED`])
  })

  test('ends the one that was sent to the phone before, and no other', async () => {
    const phone = shop.newPhone()
    const own = await shop.native('/v1/otp/send', { phone })
    const first = await shop.sendCode(phone)
    const code = shop.codeOf(phone)
    const second = await shop.sendCode(phone)
    expectError(await shop.validateCode(first.body.authenticationId, code), [
      400,
      `${prefix}VERIFICATION_EXPIRED`,
    ])
    expect((await shop.validateCode(second.body.authenticationId, shop.codeOf(phone))).status).toBe(204)
    const { stdout } = await shop.otpd(['otp', 'list', '--phone', phone, '--json'])
    const listed: Array<{ id: string; status: string }> = JSON.parse(stdout).data
    expect(listed.map(({ status }) => status)).toEqual(['verified', 'canceled', 'pending'])
    expect(listed[2]?.id).toBe(own.data.requestId)
    const uuid = first.body.authenticationId
    expect(listed[1]?.id).toBe(hexToId('otp', uuid.replaceAll('-', '')))
    const events = await shop.otpd(['otp', 'get', listed[1]?.id ?? '', '--json'])
    expect(events.stdout).not.toContain('{{code}}')
  })

  test('lives on where the next one is refused', async () => {
    const phone = shop.newPhone()
    const { authenticationId } = (await shop.sendCode(phone)).body
    expect((await shop.sendCode(phone, 'no placeholder')).status).toBe(400)
    expect((await shop.validateCode(authenticationId, shop.codeOf(phone))).status).toBe(204)
  })

  test('has five attempts', async () => {
    const phone = shop.newPhone()
    const { authenticationId } = (await shop.sendCode(phone)).body
    for (const wrong of ['1', 'AJY3', '{"a": 1}', shop.wrongCodeOf(phone)])
      expectError(await shop.validateCode(authenticationId, wrong), [400, `${prefix}INVALID_OTP`])
    const failed: [number, string] = [400, `${prefix}VERIFICATION_FAILED`]
    expectError(await shop.validateCode(authenticationId, shop.wrongCodeOf(phone)), failed)
    expectError(await shop.validateCode(authenticationId, shop.codeOf(phone)), failed)
  })

  test('that expired is no longer valid', async () => {
    const phone = shop.newPhone()
    const { authenticationId } = (await shop.sendCode(phone)).body
    shop.advance(301_000)
    const answer = await shop.validateCode(authenticationId, shop.codeOf(phone))
    expectError(answer, [400, `${prefix}VERIFICATION_EXPIRED`])
  })

  test('of another application does not exist, nor does any other id', async () => {
    const phone = shop.newPhone()
    const { authenticationId } = (await shop.sendCode(phone)).body
    for (const id of ['x', 'ea0840f3-3663-4149-bd10-c7c6b8912105', authenticationId.replaceAll('-', '')])
      expectError(await shop.validateCode(id, '123456'), [404, 'NOT_FOUND'])
    const other = await shop.validateCode(authenticationId, shop.codeOf(phone), { as: shop.test })
    expectError(other, [404, 'NOT_FOUND'])
  })

  test('of a test application stays in the inbox, with its text', async () => {
    const { body } = await shop.sendCode('+14155550177', 'Yours: {{code}}', { as: shop.test })
    const { stdout } = await shop.otpd(['inbox', '--json'])
    expect(JSON.parse(stdout).data[0]).toMatchObject({ phone: '+14155550177', text: 'Yours: 424242' })
    expect((await shop.validateCode(body.authenticationId, '424242', { as: shop.test })).status).toBe(204)
  })

  test('that a provider refuses for now goes out again with its text', async () => {
    const phone = shop.newPhone()
    shop.failNext(1)
    expect((await shop.sendCode(phone, 'Later: {{code}}')).status).toBe(200)
    shop.advance(60_000)
    for (let count = 0; shop.textOf(phone) === '' && count < 100; count++) await Bun.sleep(100)
    expect(shop.textOf(phone)).toBe(`Later: ${shop.codeOf(phone)}`)
  }, 120_000)

  test('is the only one that 50 calls at once leave, and verifies once', async () => {
    const [phone, as] = ['+14155550143', shop.test]
    const sent = await Promise.all(Array.from({ length: 50 }, () => shop.sendCode(phone, undefined, { as })))
    expect(sent.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 200))
    const validated = await Promise.all(
      sent.map(({ body }) => shop.validateCode(body.authenticationId, '424242', { as })),
    )
    expect(validated.filter(({ status }) => status === 204)).toHaveLength(1)
    const codes = validated.filter(({ error }) => error.code === `${prefix}VERIFICATION_EXPIRED`)
    expect(codes).toHaveLength(49)
  })
})
