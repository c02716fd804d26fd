import { afterAll, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { listenHttp } from '../../src/http/http-listener.ts'
import { listen } from '../../src/http/listener.ts'
import { exchangeRaw } from '../helpers/raw-http.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'

const newId = () => 'req_00000000000000000000000000'
const bugs: unknown[] = []
const onBug = (error: unknown) => void bugs.push(error)
let isReady = false
const http = listenHttp(
  { host: '127.0.0.1', port: 0 },
  {
    newId,
    onBug,
    findChallenge: (token) => (token === 'known' ? 'known.thumbprint' : undefined),
    httpsOrigin: (host) => (host === 'otp.test' ? 'https://otp.test' : undefined),
    isReady: () => isReady,
    answerProbe: new Elysia()
      .get('/v1/health/ready', () =>
        Response.json({ data: { status: 'not_ready', cause: 'certificate' } }, { status: 503 }),
      )
      .compile().fetch,
  },
)
afterAll(() => http.stop())

async function call(method: string, path: string, host: string | null = 'otp.test', body = '') {
  const hostLine = host === null ? '' : `Host: ${host}\r\n`
  const head = `${method} ${path} HTTP/1.${host === null ? 0 : 1}\r\n${hostLine}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`
  const { responses } = await exchangeRaw(Number(new URL(http.url).port), [head + body])
  const [response] = responses
  return [response?.status, response?.headers.get('location') ?? response?.body]
}

test('before there is a certificate, only challenges and probes are answered', async () => {
  expect(await call('GET', '/.well-known/acme-challenge/known')).toEqual([200, 'known.thumbprint'])
  expect(await call('GET', '/v1/health/ready')).toEqual([503, expect.stringContaining('certificate')])
  // The framework finds the path behind a host of four characters or more.
  for (const host of ['x', 'abc', '', 'a/v1/health#', null])
    expect(await call('GET', '/v1/health/ready', host)).toEqual([503, expect.stringContaining('certificate')])
  for (const path of ['/', '/docs/', '/.well-known/acme-challenge/other'])
    expect(await call('GET', path)).toEqual([503, expect.stringContaining('There is no certificate yet.')])
  expect(await call('POST', '/v1/otp/send', 'otp.test', '{}')).toEqual([
    403,
    expect.stringContaining('Use https.'),
  ])
})

test('after that, safe methods are redirected to the same path, and nothing else is accepted', async () => {
  isReady = true
  expect(await call('GET', '/.well-known/acme-challenge/known')).toEqual([200, 'known.thumbprint'])
  expect(await call('GET', '/v1/health')).toEqual([308, 'https://otp.test/v1/health'])
  expect(await call('GET', '/docs/?q=a%20b')).toEqual([308, 'https://otp.test/docs/?q=a%20b'])
  expect(await call('GET', '//evil.example/a')).toEqual([308, 'https://otp.test//evil.example/a'])
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
    expect(await call(method, '/.well-known/acme-challenge/known')).toEqual([
      403,
      expect.stringContaining('Use https.'),
    ])
})

test('no host leads elsewhere', async () => {
  for (const host of ['evil.example', 'otp.test.evil.example', 'otp.test@evil.example', 'a b', null])
    expect((await call('GET', '/', host))[0]).toBe(404)
  expect(bugs).toEqual([])
})

test.skipIf(!hasOpenssl)(
  'a listener without a certificate keeps its port, and opens it with the first one',
  async () => {
    const needs = { newId, onBug, tls: { pair: null, hstsSeconds: 0 } }
    const https = listen({ host: '127.0.0.1', port: 0 }, new Elysia().get('/', 'here'), needs)
    const get = (ca: string) =>
      fetch(https.url.replace('127.0.0.1', 'localhost'), { tls: { ca }, keepalive: false })
    const { cert, key } = makeCertificate('localhost')
    expect(get(cert)).rejects.toThrow()
    https.exchange({ certificate: cert, key })
    expect(await (await get(cert)).text()).toBe('here')
    const other = makeCertificate('localhost')
    expect(() => https.exchange({ certificate: cert, key: other.key })).toThrow()
    expect(await (await get(cert)).text()).toBe('here')
    https.exchange({ certificate: other.cert, key: other.key })
    await https.stop(0)
    await expect(get(other.cert)).rejects.toThrow()
    // A renewal that ends during the shutdown.
    https.exchange({ certificate: other.cert, key: other.key })
    await expect(get(other.cert)).rejects.toThrow()
  },
)
