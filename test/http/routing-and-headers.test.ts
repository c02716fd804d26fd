import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { canary, createApiTester, type ApiTester } from '../helpers/api-tester.ts'
import { findSchemaFaults } from '../helpers/json-schema.ts'
import type { Operation } from '../helpers/openapi.ts'

let apiTester: ApiTester

beforeAll(async () => void (apiTester = await createApiTester()))
afterAll(() => apiTester.service.dispose())

/** Lists each path once, with its methods. `GET /v1/otp/send` is not the request with the id `send`. */
function listPaths() {
  const filled = new Set(
    apiTester.operations.map((operation) =>
      // Without the required parts of the query.
      apiTester.fillPath(operation, apiTester.owner).replace(/\?.*$/, ''),
    ),
  )
  const listMethods = (operations: Operation[]) => {
    const methods = operations.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    return [...new Set(methods)].toSorted()
  }
  return [...filled].map((path) => {
    const matching = apiTester.operations.filter((operation) =>
      new RegExp(`^${operation.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
    )
    const exact = matching.filter((operation) => operation.path === path)
    return { path, methods: listMethods(exact.length > 0 ? exact : matching) }
  })
}

describe('an unknown path', () => {
  test.each([
    '/v1',
    '/v1/',
    '/v2/health',
    '/V1/health',
    '/v1/Health',
    '/v1/healthy',
    '/v1/health/x',
    '//v1/health',
    '/v1//health',
    '/v1/health//',
    '/v1%2Fhealth',
    '/v1/%68ealth',
    '/health',
    '/v1/otp/send/x',
    '/v1/docs/x',
    '/v1/docs/%2e%2e/x',
    '/.env',
    '/v1/openapi.jsonx',
    '/v1/openapixjson',
    '/*',
    '/v1/*',
    '/v1/:id',
    '/%',
    '/%zz',
    '/%00',
    '/%ff',
    `/${canary}`,
    `/v1/${canary.repeat(300)}`,
  ])('is 404 ROUTE_NOT_FOUND: %s', async (path) => {
    for (const method of ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS']) {
      const { response, faults } = await apiTester.callUnknownRoute(method, path)
      expect({ method, faults, status: response.status }).toEqual({ method, faults: [], status: 404 })
      expect(response.json).toMatchObject({ error: { code: 'NOT_FOUND', reason: 'ROUTE_NOT_FOUND' } })
    }
  })
})

describe('a method that a path does not support', () => {
  test('is 404 on a misspelt path that is no id', async () => {
    for (const path of ['/v1/otp/sned', '/v1/otp/verify-code', '/v1/projects/new', '/v1/users/search']) {
      const { response } = await apiTester.callUnknownRoute('POST', path)
      expect([path, response.status]).toEqual([path, 404])
    }
  })

  test('is 405 and lists the supported methods, without authentication', async () => {
    const { routes } = apiTester.service.app
    const refused = new Set(routes.filter(({ hooks }) => hooks.detail?.hide === true).map(({ path }) => path))
    for (const { path, methods } of listPaths()) {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'get']) {
        // The Fetch standard normalizes common methods to upper case.
        if (methods.includes(method.toUpperCase())) continue
        const { response, faults } = await apiTester.callUnknownRoute(method, path)
        expect({ path, method, status: response.status }).toEqual({ path, method, status: 405 })
        expect(response.headers.get('allow')?.split(', ')).toEqual(methods)
        expect(faults).toEqual([])
        // The framework removes the body for HEAD if a route for GET refuses it.
        if (method === 'HEAD' && refused.has(path)) expect(response.text).toBe('')
        else expect(response.json).toMatchObject({ error: { code: 'METHOD_NOT_ALLOWED' } })
      }
    }
  })
})

describe('HEAD', () => {
  test('has the same status and headers as GET', async () => {
    for (const operation of apiTester.operations.filter(({ method }) => method === 'GET')) {
      const path = apiTester.fillPath(operation, apiTester.owner)
      const headers = apiTester.headersFor(operation, apiTester.owner)
      const [head, get] = await Promise.all(
        ['HEAD', 'GET'].map((method) =>
          apiTester.service.app.handle(new Request(`http://otpd.test${path}`, { method, headers })),
        ),
      )
      expect({ path, status: head?.status }).toEqual({ path, status: get?.status })
      // The engine adds these to GET when it writes the body.
      const framing = ['content-length', 'transfer-encoding']
      const names = (response: Response | undefined) =>
        [...(response?.headers.keys() ?? [])].filter((name) => !framing.includes(name)).toSorted()
      expect(names(head)).toEqual(names(get))
    }
  })
})

describe('the order of checks:', () => {
  const bodies = () => apiTester.operations.filter(({ body }) => body !== undefined)
  const guarded = () => apiTester.operations.filter(({ security }) => security.length > 0)
  const big = JSON.stringify({ x: 'x'.repeat(65_536) })
  const wrong: Record<string, string> = { authorization: 'Bearer nonsense', 'x-api-key': 'nonsense' }

  test('Content-Length before the route', async () => {
    for (const [method, path] of [
      ['POST', '/v1/otp/send'],
      ['POST', `/${canary}`],
      ['PUT', '/v1/health'],
      ['GET', '/v1/projects'],
    ] as const) {
      const { response, faults } = await apiTester.callUnknownRoute(method, path, {
        headers: { 'content-length': '65537' },
      })
      expect({ path, faults, status: response.status }).toEqual({ path, faults: [], status: 413 })
    }
  })

  test('the route before the media type', async () => {
    const headers = { 'content-type': 'text/plain' }
    expect(
      (await apiTester.callUnknownRoute('POST', '/v1/nothing', { body: 'x', headers })).response.status,
    ).toBe(404)
    expect(
      (await apiTester.callUnknownRoute('PUT', '/v1/otp/send', { body: 'x', headers })).response.status,
    ).toBe(405)
  })

  test('the media type before the size of the body', async () => {
    for (const operation of bodies()) {
      const { response } = await apiTester.callAndCheck(operation, {
        body: big,
        headers: { 'content-type': 'text/plain' },
      })
      expect(response.status).toBe(415)
    }
  })

  test('the media type and JSON before authentication', async () => {
    for (const operation of bodies()) {
      const typed = { body: '{}', as: wrong, headers: { 'content-type': 'text/plain' } }
      expect((await apiTester.callAndCheck(operation, typed)).response.status).toBe(415)
      const malformed = await apiTester.callAndCheck(operation, { body: '{', as: wrong })
      expect(malformed.response.json).toMatchObject({ error: { code: 'MALFORMED_JSON' } })
    }
  })

  test('authentication before validation, with bad credentials and with none', async () => {
    for (const operation of guarded()) {
      const callers: Array<Record<string, string>> = [
        wrong,
        {},
        { authorization: 'Basic eDp5' },
        { 'x-client-id': canary, 'x-api-key': canary },
      ]
      for (const as of callers) {
        const body = operation.body && '{"nothing":"of the kind"}'
        const { response, faults } = await apiTester.callAndCheck(operation, {
          as,
          body,
          query: '?limit=x&nothing=%zz',
        })
        expect({ of: operation.operationId, as, faults, status: response.status }).toEqual({
          of: operation.operationId,
          as,
          faults: [],
          status: 401,
        })
        expect(response.headers.get('www-authenticate')).toMatch(/^(Bearer|Application) realm="otpd"/)
      }
    }
  })

  test('a route that requires no credentials is documented as public', async () => {
    for (const operation of apiTester.operations.filter(({ security }) => security.length === 0)) {
      const { response, faults } = await apiTester.callAndCheck(operation)
      expect({ of: operation.operationId, faults }).toEqual({ of: operation.operationId, faults: [] })
      expect(response.status).not.toBe(401)
    }
  })
})

describe('malformed headers', () => {
  test('get 401 and cause no error of the server', async () => {
    const headers: Array<Record<string, string>> = [
      { authorization: `Bearer ${canary}` },
      { authorization: `Bearer ${canary.repeat(2000)}` },
      { authorization: 'Bearer' },
      { authorization: 'Bearer  ' },
      { authorization: `Bearer ${'e30.'.repeat(3)}` },
      { authorization: 'Bearer eyJhbGciOiJub25lIn0.e30.' },
      { authorization: 'Bearer a b' },
      { authorization: `${canary}` },
      { 'x-client-id': canary, 'x-client-secret': canary, 'x-api-key': canary },
      { 'x-api-key': `ph_live_api_${'0'.repeat(48)}`, 'x-client-id': 'é', 'x-client-secret': '' },
      { 'x-api-key': 'ph_live_api_'.repeat(1000) },
    ]
    for (const operation of apiTester.operations.filter(({ security }) => security.length > 0)) {
      for (const as of headers) {
        const body = operation.body && JSON.stringify(apiTester.validBody(operation, apiTester.owner))
        const { response, faults } = await apiTester.callAndCheck(operation, { as, body })
        expect({ of: operation.operationId, as, faults, status: response.status }).toMatchObject({
          faults: [],
          status: 401,
        })
      }
    }
  })

  const idempotentOperations = () =>
    apiTester.operations.flatMap((operation) => {
      const schema = operation.parameters?.find(({ name }) => name === 'Idempotency-Key')?.schema
      return schema ? [{ operation, schema }] : []
    })

  test.each(['a', '"a"', '~!#', 'x'.repeat(255), `"${'x'.repeat(255)}"`])(
    'the Idempotency-Key %j is accepted, and the document says so',
    async (key) => {
      for (const { operation, schema } of idempotentOperations()) {
        expect(findSchemaFaults(schema, key, {}, true)).toEqual([])
        const { response } = await apiTester.callAndCheck(operation, {
          body: '{}',
          headers: { 'idempotency-key': key },
        })
        expect(response.text).not.toContain('IDEMPOTENCY_KEY_INVALID')
      }
    },
  )

  test.each(['', ' ', 'a b', 'é', '"', '"a', '""', 'a"b', 'x'.repeat(256), `"${'x'.repeat(256)}"`])(
    'the Idempotency-Key %j is rejected, and the document says so',
    async (key) => {
      expect(idempotentOperations().length).toBeGreaterThanOrEqual(5)
      for (const { operation, schema } of idempotentOperations()) {
        expect(findSchemaFaults(schema, key, {}, true)).not.toEqual([])
        const body = JSON.stringify(apiTester.validBody(operation, apiTester.owner))
        const { response, faults } = await apiTester.callAndCheck(operation, {
          body,
          headers: { 'idempotency-key': key },
        })
        expect({ of: operation.operationId, faults }).toEqual({ of: operation.operationId, faults: [] })
        expect(response.json).toMatchObject({ error: { reason: 'IDEMPOTENCY_KEY_INVALID' } })
      }
    },
  )

  test('X-Request-Id of the caller is not used', async () => {
    for (const operation of apiTester.operations) {
      const body = operation.body && '{}'
      const { response } = await apiTester.callAndCheck(operation, {
        body,
        headers: { 'x-request-id': canary },
      })
      expect(response.headers.get('x-request-id')).not.toContain(canary)
    }
  })
})

describe('an operation that takes no body', () => {
  test('validates an unexpected body and ignores its content', async () => {
    const faults: string[] = []
    const plain = apiTester.operations.filter(
      ({ method, requestBody, path }) => method !== 'GET' && !requestBody && path.includes('{'),
    )
    expect(plain.length).toBeGreaterThanOrEqual(5)
    const bodies: Array<[type: string, body: string | undefined, status: number]> = [
      ['application/json', '{}', 404],
      ['application/json', `{"${canary}":"${canary}"}`, 404],
      ['application/json', `{"${canary}":`, 400],
      ['application/json', '['.repeat(5000), 400],
      ['application/json', JSON.stringify('x'.repeat(65_536)), 413],
      ['application/x-www-form-urlencoded', `a=${canary}`, 415],
      ['text/plain', canary, 415],
      ['', canary, 415],
      ['text/plain', undefined, 404],
    ]
    for (const operation of plain) {
      for (const [type, body, status] of bodies) {
        // The id does not exist: other tests cover what the operation does.
        const path = apiTester.fillPathWith(operation, 'absent')
        const request = { path, body, headers: { 'content-type': type } }
        const result = await apiTester.callAndCheck(operation, request)
        faults.push(...result.faults)
        if (result.response.status !== status)
          faults.push(`${operation.operationId}: ${result.response.status}`)
      }
    }
    expect(faults).toEqual([])
  })
})

describe('provider callbacks', () => {
  test('with an unknown provider or token get 404 for any body', async () => {
    for (const path of [
      '/v1/callbacks/x/y',
      `/v1/callbacks/twilio/${canary}`,
      '/v1/callbacks/%zz/%00',
      '/v1/callbacks/x/%ff',
    ]) {
      for (const body of [undefined, '{', canary, '\0']) {
        const method = body === undefined ? 'GET' : 'POST'
        const { response, faults } = await apiTester.callUnknownRoute(method, path, { body })
        expect({ path, faults, status: response.status }).toEqual({ path, faults: [], status: 404 })
      }
    }
    const large = await apiTester.callUnknownRoute('POST', '/v1/callbacks/x/y', { body: 'x'.repeat(65_537) })
    expect([large.response.status, large.faults]).toEqual([413, []])
  })
})
