import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { exchangeRaw } from '../helpers/raw-http.ts'
import { getRequest, startRawService, type RawService } from '../helpers/raw-service.ts'

let raw: RawService
let port: number

beforeAll(async () => {
  raw = await startRawService()
  port = raw.port
})
beforeEach(() => raw.reset())
afterAll(() => raw.dispose())

describe('the router sees the path of the request line', () => {
  const hosts = [
    'a',
    'x',
    'ab',
    'abc',
    'abcd',
    'localhost',
    'a_b',
    '..',
    '[::1]',
    '127.0.0.1:80',
    'x:1',
    '',
    ' ',
  ]

  test.each([...hosts, 'a'.repeat(2000)])('with Host: %s', async (host) => {
    expect((await raw.request(getRequest('/v1/health', `Host: ${host}`))).status).toBe(200)
    // A framework that expects a longer host would find another route in these paths.
    for (const shift of ['/a', '/ab', '/abc', '/abcd', '/abcdefghij', '/', '/v1', '/x/..x', '/#']) {
      const response = await raw.request(getRequest(`${shift}/v1/health`, `Host: ${host}`))
      expect([shift, response.status]).toEqual([shift, 404])
    }
    // The rest is the query of the root, which lists links.
    const { body } = await raw.request(getRequest('/?/v1/health', `Host: ${host}`))
    expect(JSON.parse(body)).toMatchObject({ data: { guides: '/docs/' } })
  })

  test('without Host, which HTTP/1.0 allows', async () => {
    expect((await raw.request('GET /v1/health HTTP/1.0\r\n\r\n')).status).toBe(200)
    for (const target of ['/aaaaaaaaaa/v1/health', '//aaaaaaaa/v1/health', '//localhost/v1/health']) {
      expect((await raw.request(`GET ${target} HTTP/1.0\r\n\r\n`)).status).toBe(404)
    }
  })

  test.each([
    ['http://evil.example/v1/health', 200],
    ['https://evil.example/v1/health', 200],
    ['http://x/v1/health', 200],
    ['http://x/aa/v1/health', 404],
    ['http://evil.example', 200],
    ['http://evil.example?/v1/health', 200],
    ['//v1/health', 404],
    ['//evil.example/v1/health', 404],
    ['/v1//health', 404],
    ['/v1/health;x', 404],
    ['/v1/health%00', 404],
    ['/v1%2fhealth', 404],
    ['/v1/health?', 200],
    ['/v1/health?x=/v1/projects', 200],
    ['/x?/v1/health', 404],
    ['/x#/v1/health', 404],
    // The URL standard resolves these before routing; a proxy in front may have judged the path as it was sent.
    ['/v1/../v1/health', 404],
    ['/v1/%2e%2e/v1/health', 404],
    ['/v1/%2E%2E/v1/health', 404],
    ['/v1/.%2e/v1/health', 404],
    ['/v1/./health', 404],
    ['/v1/%2E/health', 404],
    ['/v1/health/.', 404],
    ['/v1/health/%2e', 404],
    ['/v1/health/x/..', 404],
    ['/v1/projects/../health', 404],
    ['/v1/health/../projects', 404],
    ['/a/b/c/d/e/f/g/h/../../../../../../../../v1/health', 404],
    ['http://x/v1/../v1/health', 404],
    ['/v1\\health', 404],
    ['\\v1\\health', 400],
    ['/v1%5Chealth', 404],
    ['/v1/%5c../v1/health', 404],
    ['/v1/users/%5C', 404],
    ['/v1/.\t./v1/health', 505],
    ['/v1/health//', 404],
    ['/v1//health/', 404],
    ['/v1/health?x=/../y', 200],
    ['/..//v1/health', 404],
    ['evil.example/v1/health', 400],
    ['v1/health', 400],
    ['*', 400],
    ['?x', 400],
    ['', 400],
    ['ftp://x/v1/health', 400],
    [`/${'a'.repeat(20_000)}`, 431],
  ])('for the request target %s: %d', async (target, status) => {
    expect((await raw.request(getRequest(target, 'Host: localhost'))).status).toBe(status)
  })

  test('but rejects OPTIONS *, which has no path', async () => {
    expect(
      (await raw.request('OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')).status,
    ).toBe(400)
  })
})

describe('one trailing slash', () => {
  test.each([
    ['/v1/health/', '/v1/health'],
    ['/v1/health/?x=1/', '/v1/health?x=1/'],
    ['/v1/users/%2B14155550142/', '/v1/users/%2B14155550142'],
    ['/nothing/', '/nothing'],
    ['http://evil.example/v1/health/', '/v1/health'],
  ])('of %s is redirected to %s', async (target, location) => {
    const { status, headers } = await raw.request(getRequest(target, 'Host: localhost'))
    expect([status, headers.get('location')]).toEqual([308, location])
    expect(headers.get('x-request-id')).toMatch(/^req_/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  })

  test('is 404 for every method that may change something', async () => {
    for (const method of ['POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS']) {
      const request = `${method} /v1/projects/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
      raw.expectError(await raw.request(request), 404, { reason: 'ROUTE_NOT_FOUND' })
    }
  })

  test('is no host to be redirected to', async () => {
    for (const target of ['//evil.example/', '/\\evil.example/', '/%5Cevil.example/']) {
      expect((await raw.request(getRequest(target, 'Host: localhost'))).status).toBe(404)
    }
  })

  test('belongs to the root and to the documentation', async () => {
    for (const [target, status] of [
      ['/', 200],
      ['/v1/docs/', 200],
      ['/docs/', 200],
      ['/docs/webhooks/', 308],
    ] as const) {
      expect((await raw.request(getRequest(target, 'Host: localhost'))).status).toBe(status)
    }
  })
})

describe('request line and headers', () => {
  const action = (length: number) => `/v1/audit?action=${'a'.repeat(length)}`

  test('of less than 16 KiB reach the route', async () => {
    raw.expectError(await raw.request(getRequest(action(16_000), 'Host: localhost')), 401, {
      code: 'UNAUTHENTICATED',
    })
  })

  // These never reach the application, as the OpenAPI document says.
  test.each([
    ['in the URL', getRequest(action(20_000), 'Host: localhost')],
    ['in a header', getRequest('/v1/audit', `Host: localhost\r\nX-A: ${'a'.repeat(20_000)}`)],
    ['together', getRequest(action(9_000), `Host: localhost\r\nX-A: ${'a'.repeat(9_000)}`)],
  ])('of more than 16 KiB %s get 431 without a body', async (_, request) => {
    const { status, headers, body } = await raw.request(request)
    expect([status, body, headers.get('x-request-id')]).toEqual([431, '', undefined])
  })
})

describe('a Host header that could shift the path', () => {
  test.each([
    'a/b',
    'evil.example/v1/health?',
    'evil?',
    'evil#',
    '?',
    '#',
    '/',
    'user@host',
    '@',
    'a b',
    'a\tb',
    'a\\b',
    'a%2fb',
    '%',
    'a,b',
    '*.x',
    'a;b',
    'a\x7fb',
    'http://a',
    '\xfcml\xe4ut',
    "'",
    '"',
    '<x>',
    '{}',
    // Not valid authorities: no URL can be built from them.
    'a:b:c:d',
    '[::1',
    '[]:80',
    '[zz]',
    'localhost:99999',
    'localhost:-1',
    'localhost:80:80',
    '1.2.3.4.5',
    '999.999.1.1',
    'xn--a',
  ])('is rejected: %s', async (host) => {
    const response = await raw.request(getRequest('/v1/health', `Host: ${host}`))
    const details = [{ in: 'header', path: 'host', code: 'INVALID' }]
    raw.expectError(response, 400, { code: 'INVALID_ARGUMENT', details })
  })

  test('is rejected if it is repeated, or missing in HTTP/1.1', async () => {
    expect((await raw.request(getRequest('/v1/health', 'Host: a.example', 'Host: b.example'))).status).toBe(
      400,
    )
    expect((await raw.request(getRequest('/v1/health', 'Host: a.example', 'Host: b/x'))).status).toBe(400)
    expect((await raw.request(getRequest('/v1/health'))).status).toBe(400)
  })
})

describe('methods', () => {
  test.each(['TRACE', 'PROPFIND', 'QUERY', 'SEARCH', 'LINK', 'OPTIONS', 'PUT', 'CONNECT'])(
    '%s is 405 and echoes nothing',
    async (method) => {
      for (const host of ['localhost', 'x']) {
        const response = await raw.request(
          `${method} /v1/health HTTP/1.1\r\nHost: ${host}\r\nX-Canary: canary\r\n\r\n`,
        )
        raw.expectError(response, 405, { code: 'METHOD_NOT_ALLOWED' })
        expect(response.headers.get('allow')).toBe('GET, HEAD')
        expect(response.body).not.toContain('canary')
      }
    },
  )

  test('that no standard defines close the connection', async () => {
    for (const method of ['FOO', 'get', 'X'.repeat(300)]) {
      const exchange = await exchangeRaw(port, [`${method} /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n`])
      expect(exchange).toEqual({ responses: [], closed: true })
    }
  })

  test('HEAD has no body for any status', async () => {
    for (const target of ['/v1/health', '/v1/projects', '/nothing']) {
      const { responses } = await exchangeRaw(
        port,
        [`HEAD ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`],
        Infinity,
      )
      // Content-Length is that of GET but no body follows, so this test's HTTP reader waits and yields no response.
      expect(responses).toEqual([])
    }
    expect(raw.calls.map(({ method, status }) => [method, status])).toEqual([
      ['HEAD', 200],
      ['HEAD', 401],
      ['HEAD', 404],
    ])
  })
})
