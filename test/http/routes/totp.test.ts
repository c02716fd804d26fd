import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { totpCode, totpStep } from '../../../src/domain/model/totp.ts'
import { decodeBase32 } from '../../helpers/base32.ts'
import { startIdentityServer } from '../../helpers/identity.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'

let service: TestService
let server: Awaited<ReturnType<typeof startIdentityServer>>
let strict: Awaited<ReturnType<typeof startIdentityServer>>
let people = 0

const password = 'correct horse battery'

beforeAll(async () => {
  service = await createTestService()
  server = await startIdentityServer(service)
  strict = await startIdentityServer(service, {
    env: { OTPD_REQUIRE_TOTP: '1' },
    publicUrl: server.url,
  })
})
afterAll(async () => {
  await server.stop()
  await strict.stop()
  await service.dispose()
})
beforeEach(() => service.clock.advance(3_600_000))

type Json = Record<string, unknown> & { data?: Record<string, unknown>; error?: unknown }
type Answer = { status: number; json: Json }

const answer = async (response: Response): Promise<Answer> => ({
  status: response.status,
  json: JSON.parse(await response.text()),
})
const call = async (method: string, path: string, token: string, body?: object, url = server.url) =>
  answer(
    await fetch(`${url}/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    }),
  )
const logIn = async (email: string, totp?: string) => {
  const form = { grant_type: 'password', username: email, password, ...(totp !== undefined && { totp }) }
  return answer(await server.postForm('/v1/auth/token', form, `192.0.2.${(people += 1)}`))
}
const currentCode = (secret: unknown) => totpCode(decodeBase32(String(secret)), totpStep(service.clock.now()))

async function newAccount() {
  const email = `totp-${(people += 1)}@example.com`
  const { builtIn } = server.services
  await builtIn?.accounts.create({ email, password })
  const { json } = await logIn(email)
  return { email, token: String(json.id_token) }
}

describe('TOTP over HTTP', () => {
  test('is proposed, confirmed, required and disabled', async () => {
    const { email, token } = await newAccount()
    const proposed = await call('POST', '/developer/me/totp', token)
    expect(proposed.status).toBe(200)
    expect(proposed.json.data?.uri).toStartWith('otpauth://totp/otpd:')
    const secret = proposed.json.data?.secret
    expect((await logIn(email)).status).toBe(200)

    const wrong = await call('POST', '/developer/me/totp/confirm', token, { code: 'nonsense' })
    expect(wrong).toMatchObject({ status: 400, json: { error: { details: [{ path: 'code' }] } } })
    const confirmed = await call('POST', '/developer/me/totp/confirm', token, { code: currentCode(secret) })
    expect(confirmed).toMatchObject({ status: 200, json: { data: { enabled: true } } })
    expect(confirmed.json.data?.recoveryCodes).toHaveLength(10)

    expect(await logIn(email)).toEqual({
      status: 400,
      json: { error: 'mfa_required', error_description: expect.stringContaining('totp') },
    })
    service.clock.advance(30_000)
    const code = currentCode(secret)
    expect((await logIn(email, code)).status).toBe(200)
    expect(await logIn(email, code)).toMatchObject({ status: 400, json: { error: 'invalid_grant' } })

    service.clock.advance(30_000)
    const disabled = await call('DELETE', '/developer/me/totp', token, { code: currentCode(secret) })
    expect(disabled).toEqual({ status: 200, json: { data: { enabled: false } } })
    expect((await logIn(email)).status).toBe(200)
  })

  test('a wrong password is told from a missing code only to those who know the password', async () => {
    const { email, token } = await newAccount()
    const { json } = await call('POST', '/developer/me/totp', token)
    await call('POST', '/developer/me/totp/confirm', token, { code: currentCode(json.data?.secret) })
    const form = { grant_type: 'password', username: email, password: 'wrong horse battery' }
    const wrong = await answer(await server.postForm('/v1/auth/token', form))
    const unknown = await answer(
      await server.postForm('/v1/auth/token', { ...form, username: 'nobody@example.com' }),
    )
    expect(wrong).toEqual(unknown)
    expect(wrong.json.error).toBe('invalid_grant')
  })

  test.each([
    ['nothing', undefined, 'MALFORMED_JSON'],
    ['no proof', {}, 'INVALID_ARGUMENT'],
    ['two proofs', { password, code: '123456' }, 'INVALID_ARGUMENT'],
    ['an unknown field', { totp: '123456' }, 'INVALID_ARGUMENT'],
  ])('is not disabled with %s', async (_name, body, code) => {
    const { token } = await newAccount()
    expect(await call('DELETE', '/developer/me/totp', token, body)).toMatchObject({
      status: 400,
      json: { error: { code } },
    })
  })

  test('a developer without a password cannot have it', async () => {
    const { headers } = await service.createDeveloper()
    const { status } = await service.request('POST', '/v1/developer/me/totp', { as: { headers } })
    expect(status).toBe(404)
  })
})

describe('a server that requires TOTP', () => {
  const strictCall = (method: string, path: string, token: string, body?: object) =>
    call(method, path, token, body, strict.url)

  test('lets a developer without it log in, read the profile and enable it, and nothing else', async () => {
    const { token } = await newAccount()
    expect((await strictCall('GET', '/developer/me', token)).status).toBe(200)
    for (const path of ['/projects', '/logs', '/audit', '/webhooks?appId=app_x'])
      expect(await strictCall('GET', path, token)).toMatchObject({
        status: 403,
        json: { error: { code: 'FORBIDDEN', reason: 'TOTP_REQUIRED' } },
      })
    const { json } = await strictCall('POST', '/developer/me/totp', token)
    const code = currentCode(json.data?.secret)
    expect((await strictCall('POST', '/developer/me/totp/confirm', token, { code })).status).toBe(200)
    expect((await strictCall('GET', '/projects', token)).status).toBe(200)
  })

  test('refuses every console route to them but those of their own account', async () => {
    const { token } = await newAccount()
    const { paths } = (await (await fetch(`${strict.url}/v1/openapi.json`)).json()) as {
      paths: Record<string, Record<string, { security?: Record<string, unknown>[] }>>
    }
    const open: string[] = []
    for (const [path, operations] of Object.entries(paths))
      for (const [method, { security = [] }] of Object.entries(operations)) {
        if (!security.some((scheme) => 'console' in scheme)) continue
        const { status, json } = await strictCall(
          method.toUpperCase(),
          path.replace('/v1', '').replaceAll(/\{\w+\}/g, 'x'),
          token,
          method === 'get' || method === 'delete' ? undefined : {},
        )
        const { reason } = (json.error ?? {}) as { reason?: string }
        if (status !== 403 || reason !== 'TOTP_REQUIRED') open.push(`${method} ${path}`)
      }
    expect(open.toSorted()).toEqual([
      'delete /v1/developer/me/totp',
      'get /v1/developer/me',
      'patch /v1/developer/me',
      'post /v1/auth/password',
      'post /v1/developer/me/totp',
      'post /v1/developer/me/totp/confirm',
    ])
  })
})
