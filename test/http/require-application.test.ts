import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { makeCredential, previewCredential, hashCredential } from '../../src/domain/apps/credentials.ts'
import {
  createTestService,
  type TestApplication,
  type TestCaller,
  type TestDeveloper,
  type TestService,
} from '../helpers/service.ts'
import { unlimitedPlans } from '../helpers/plans.ts'

let service: TestService
let owner: TestDeveloper

beforeAll(async () => {
  service = await createTestService({
    plans: unlimitedPlans,
  })
  owner = await service.createDeveloper()
})
afterAll(() => service.dispose())

type Headers = Record<string, string | undefined>

const phone = '+14155550100'
const make = (as = owner) => service.createApplication(as, { environment: 'test' })
const send = (headers: Headers, body: unknown = { phone }) =>
  service.request<{ requestId: string }>('POST', '/v1/otp/send', { headers, body })
const patch = (application: TestApplication, body: unknown) =>
  service.request('PATCH', `/v1/applications/${application.id}`, { as: owner, body })
const rotate = async ({ id }: TestApplication, type: string) => {
  const path = `/v1/applications/${id}/rotate/${type}`
  const response = await service.request<{ value: string }>('POST', path, { as: owner })
  expect(response.status).toBe(200)
  return response.data.value
}
const withoutTrace = (text: string) => text.replace(/req_\w{26}/, 'req')
const flipLast = (value: string) => value.slice(0, -1) + (value.endsWith('0') ? '1' : '0')

describe('the three headers of an application', () => {
  test('authenticate a request if all of them match', async () => {
    expect((await send((await make()).headers)).status).toBe(201)
  })

  test('that are missing or empty are named, the first one alone', async () => {
    const { headers } = await make()
    const names = ['x-client-id', 'x-client-secret', 'x-api-key']
    for (const nothing of [undefined, '']) {
      for (const [index, header] of names.entries()) {
        const without = Object.fromEntries(names.slice(index).map((name) => [name, nothing]))
        const response = await send({ ...headers, ...without })
        expect(response.status).toBe(401)
        expect(response.error).toEqual({
          code: 'UNAUTHENTICATED',
          message: `The header ${header} is missing or empty. Send x-client-id, x-client-secret and x-api-key together.`,
          traceId: expect.any(String),
          reason: 'MISSING_CREDENTIAL',
          metadata: { header },
        })
        expect(response.headers.get('www-authenticate')).toBe('Application realm="otpd"')
      }
    }
    // fetch sends `undefined` for a variable that was never loaded.
    const unset = await send({ ...headers, 'x-client-secret': 'undefined' })
    expect(unset.error).toMatchObject({
      reason: 'MISSING_CREDENTIAL',
      metadata: { header: 'x-client-secret' },
    })
    expect(unset.error?.message).toEndWith(
      'It came as "undefined": set the variable that your program reads it from.',
    )
    // Also where the others are wrong: what is missing says nothing about what is stored.
    const response = await send({ ...headers, 'x-client-id': 'nonsense', 'x-api-key': undefined })
    expect(response.error?.metadata).toEqual({ header: 'x-api-key' })
  })

  test('get one identical 401 for every kind of mistake', async () => {
    const { headers, clientId, clientSecret, apiKey } = await make()
    const other = await make()
    const unknown = (kind: 'secret' | 'api') =>
      makeCredential(kind, 'test', (bytes) => crypto.getRandomValues(bytes))
    const wrong: Record<string, Headers> = {
      'malformed client ID': { 'x-client-id': clientId.toUpperCase() },
      'malformed secret': { 'x-client-secret': `${clientSecret}0` },
      'malformed key': { 'x-api-key': 'nonsense' },
      'unknown key': { 'x-api-key': unknown('api') },
      'key with the same preview': { 'x-api-key': apiKey.replace(/.{5}(.{4})$/, '00000$1') },
      'wrong secret': { 'x-client-secret': unknown('secret') },
      'last digit of the client ID': { 'x-client-id': flipLast(clientId) },
      'last digit of the secret': { 'x-client-secret': flipLast(clientSecret) },
      'last digit of the key': { 'x-api-key': flipLast(apiKey) },
      'key of another environment': { 'x-api-key': apiKey.replace('test', 'live') },
      'secret of another environment': { 'x-client-secret': clientSecret.replace('test', 'live') },
      'client ID of another environment': { 'x-client-id': clientId.replace('test', 'live') },
      'client ID of another application': { 'x-client-id': other.clientId },
      'secret of another application': { 'x-client-secret': other.clientSecret },
      'key of another application': { 'x-api-key': other.apiKey },
      'only the key of another application missing': { ...other.headers, 'x-api-key': apiKey },
      'key where the secret belongs': { 'x-client-secret': apiKey },
      'two keys in one header': { 'x-api-key': `${apiKey}, ${apiKey}` },
    }
    const responses = await Promise.all(
      Object.entries(wrong).map(async ([label, change]) => ({
        label,
        response: await send({ ...headers, ...change }),
      })),
    )
    expect(responses.filter(({ response }) => response.status !== 401).map(({ label }) => label)).toEqual([])
    expect(new Set(responses.map(({ response }) => withoutTrace(response.text))).size).toBe(1)
    expect(responses[0]?.response.error).toEqual({
      code: 'UNAUTHENTICATED',
      message: expect.any(String),
      traceId: expect.any(String),
    })
  })

  test('are checked before the body', async () => {
    const { headers } = await make()
    expect((await send({ ...headers, 'x-api-key': 'nonsense' }, { nonsense: true })).status).toBe(401)
    expect((await send(headers, { nonsense: true })).status).toBe(400)
  })

  test('are rejected on console routes, and a token on routes for applications', async () => {
    const { headers } = await make()
    expect((await service.request('GET', '/v1/projects', { headers })).status).toBe(401)
    expect((await send(owner.headers)).status).toBe(401)
  })
})

describe('keys that share their preview', () => {
  test('find their own applications', async () => {
    const { applications } = service.database.tables
    const identicalApplications = [await make(), await make(), await make()]
    for (const [index, twin] of identicalApplications.entries()) {
      twin.apiKey = `ph_test_api_abcd${String(index).repeat(40)}ef01`
      twin.headers = { ...twin.headers, 'x-api-key': twin.apiKey }
      const { salt, hash } = hashCredential(twin.apiKey, (bytes) => crypto.getRandomValues(bytes))
      const columns = { apiKeySalt: salt, apiKeyHash: hash, apiKeyPreview: previewCredential(twin.apiKey) }
      await service.database.write((tx) =>
        tx.update(applications).set(columns).where(eq(applications.id, twin.id)).returning(),
      )
    }
    for (const { id, headers } of identicalApplications) {
      const sent = await send(headers)
      const request = await service.request<{ appId: string }>('GET', `/v1/otp/${sent.data.requestId}`, {
        as: owner,
      })
      expect(request.data.appId).toBe(id)
    }
    const stranger = {
      ...identicalApplications[0]?.headers,
      'x-api-key': `ph_test_api_abcd${'9'.repeat(40)}ef01`,
    }
    expect((await send(stranger)).status).toBe(401)
  })
})

describe('a rotation', () => {
  test.each([
    ['secret', 'x-client-secret'],
    ['api', 'x-api-key'],
  ])('of %s invalidates the old value immediately and keeps the others', async (type, header) => {
    const application = await make()
    const value = await rotate(application, type)
    expect((await send(application.headers)).status).toBe(401)
    expect((await send({ ...application.headers, [header]: value })).status).toBe(201)
    const newest = await rotate(application, type)
    expect((await send({ ...application.headers, [header]: value })).status).toBe(401)
    expect((await send({ ...application.headers, [header]: newest })).status).toBe(201)
  })

  test('of the webhook secret does not affect the three headers', async () => {
    const application = await make()
    await rotate(application, 'webhook_secret')
    expect((await send(application.headers)).status).toBe(201)
  })
})

describe('a disabled application', () => {
  test('gets 403 with correct credentials, and 401 with others', async () => {
    const application = await make()
    await patch(application, { status: 'disabled' })
    const right = await send(application.headers)
    expect([right.status, right.error.code, right.error.reason]).toEqual([
      403,
      'FORBIDDEN',
      'APPLICATION_DISABLED',
    ])
    for (const header of ['x-client-id', 'x-client-secret', 'x-api-key']) {
      const wrong = { ...application.headers, [header]: flipLast(application.headers[header] ?? '') }
      expect((await send(wrong)).status).toBe(401)
    }
    await patch(application, { status: 'active' })
    expect((await send(application.headers)).status).toBe(201)
  })

  test('gets 401 once it is deleted', async () => {
    const application = await make()
    await service.request('DELETE', `/v1/applications/${application.id}`, { as: owner })
    expect((await send(application.headers)).status).toBe(401)
  })

  test('gets 403 if its developer is disabled', async () => {
    const developer = await service.createDeveloper()
    const { headers } = await make(developer)
    const disable = { status: 'disabled' as const }
    await service.store.write((tx) => tx.developers.update(developer.developer.id, disable, 0))
    const response = await send(headers)
    expect([response.status, response.error.reason]).toEqual([403, 'ACCOUNT_NOT_ALLOWED'])
  })
})

describe('GET /v1/users/:phoneNumber', () => {
  const look = (headers: Headers) =>
    service.request('GET', `/v1/users/${encodeURIComponent(phone)}`, { headers })

  test('accepts only the API key', async () => {
    const { apiKey } = await make()
    const response = await look({ 'x-api-key': apiKey })
    expect([response.status, response.error.code]).toEqual([404, 'NOT_FOUND'])
  })

  test('accepts only a token', async () => {
    expect((await look(owner.headers)).status).toBe(404)
  })

  test('responds to an unknown key with the 401 of applications', async () => {
    const { apiKey } = await make()
    const triple = await send({ 'x-client-id': 'a', 'x-client-secret': 'b', 'x-api-key': 'nonsense' })
    const empty = await look({ 'x-api-key': '' })
    expect(empty.error).toMatchObject({ reason: 'MISSING_CREDENTIAL', metadata: { header: 'x-api-key' } })
    for (const wrong of ['nonsense', flipLast(apiKey), apiKey.replace('test', 'live')]) {
      const response = await look({ 'x-api-key': wrong })
      expect(response.status).toBe(401)
      expect(withoutTrace(response.text)).toBe(withoutTrace(triple.text))
    }
  })

  test('responds 403 to the key of a disabled application', async () => {
    const application = await make()
    await patch(application, { status: 'disabled' })
    expect((await look({ 'x-api-key': application.apiKey })).error.reason).toBe('APPLICATION_DISABLED')
  })

  test('gives precedence to a token', async () => {
    const { apiKey } = await make()
    const response = await look({ 'x-api-key': apiKey, authorization: 'Bearer nonsense' })
    expect([response.status, response.error.reason]).toEqual([401, 'TOKEN_INVALID'])
  })

  test('requires a token if no credentials were sent', async () => {
    const response = await look({})
    expect([response.status, response.error.reason]).toEqual([401, 'TOKEN_MISSING'])
  })

  test('says which header is missing of an application', async () => {
    const { clientId, clientSecret } = await make()
    const response = await look({ 'x-client-id': clientId, 'x-client-secret': clientSecret })
    expect(response.error).toMatchObject({ reason: 'MISSING_CREDENTIAL', metadata: { header: 'x-api-key' } })
  })
})

describe('GET /v1/otp/:id', () => {
  const look = (id: string, as: TestCaller, headers: Headers = {}) =>
    service.request('GET', `/v1/otp/${id}`, { as, headers })

  test('returns a request only to its application and its developer', async () => {
    const application = await make()
    const { requestId } = (await send(application.headers)).data
    expect((await look(requestId, application)).status).toBe(200)
    expect((await look(requestId, owner)).status).toBe(200)
    const strangers = [await make(), await service.createDeveloper()]
    for (const stranger of strangers) expect((await look(requestId, stranger)).status).toBe(404)
  })

  test('requires all three headers of an application', async () => {
    const application = await make()
    const { requestId } = (await send(application.headers)).data
    for (const header of ['x-client-id', 'x-client-secret', 'x-api-key']) {
      expect((await look(requestId, application, { [header]: undefined })).status).toBe(401)
    }
  })

  test('gives precedence to a token', async () => {
    const application = await make()
    const { requestId } = (await send(application.headers)).data
    const response = await look(requestId, application, { authorization: 'Bearer nonsense' })
    expect([response.status, response.error.reason]).toEqual([401, 'TOKEN_INVALID'])
    const other = await service.createDeveloper()
    expect((await look(requestId, application, other.headers)).status).toBe(404)
  })
})
