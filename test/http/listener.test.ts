import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { securityHeaders } from '../../src/http/app.ts'
import { listen, type Listener } from '../../src/http/listener.ts'
import type { AnsweredCall } from '../../src/http/request-log.ts'
import { createEdge, type Edge } from '../helpers/edge.ts'
import { exchangeRaw, type RawAnswer } from '../helpers/raw-http.ts'
import { createGate } from '../helpers/webhook-receiver.ts'

let edge: Edge
let listener: Listener
let port: number
let calls: AnsweredCall[] = []
let bugs: unknown[] = []
let onCall = () => {}

const portOf = ({ url }: Listener) => Number(new URL(url).port)

beforeAll(async () => {
  edge = await createEdge()
  listener = listen({ host: '127.0.0.1', port: 0 }, edge.service.app, {
    newId: edge.service.services.newId,
    onBug: (error) => void bugs.push(error),
    onAnswer(call) {
      calls.push(call)
      onCall()
    },
  })
  port = portOf(listener)
})
beforeEach(() => {
  calls = []
  bugs = []
})
afterAll(async () => {
  await listener.stop(0)
  await edge.service.dispose()
})

const get = (target: string, ...headers: string[]) =>
  [`GET ${target} HTTP/1.1`, ...headers, 'Connection: close', '', ''].join('\r\n')

/** The one answer to a request, and the connection is closed behind it. */
async function ask(...parts: string[]): Promise<RawAnswer> {
  const { answers } = await exchangeRaw(port, parts)
  const [answer, ...more] = answers
  if (!answer || more.length > 0) throw new Error(`${answers.length} answers`)
  return answer
}

function expectError(answer: RawAnswer, status: number, error: Record<string, unknown>) {
  const body: unknown = JSON.parse(answer.body)
  expect([answer.status, body]).toMatchObject([status, { error }])
  expect(edge.faultsOfError(body)).toEqual([])
  expect(body).toMatchObject({ error: { traceId: answer.headers.get('x-request-id') } })
  for (const [name, value] of Object.entries(securityHeaders)) expect(answer.headers.get(name)).toBe(value)
}

describe('the path that is routed is that of the request line', () => {
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
    expect((await ask(get('/v1/health', `Host: ${host}`))).status).toBe(200)
    // A framework that looks for the path behind a longer host would find another route in these.
    for (const shift of ['/a', '/ab', '/abc', '/abcd', '/abcdefghij', '/', '/v1', '/x/..x', '/?', '/#']) {
      const answer = await ask(get(`${shift}/v1/health`, `Host: ${host}`))
      expect([shift, answer.status]).toEqual([shift, 404])
    }
  })

  test('without a Host, which HTTP/1.0 allows', async () => {
    expect((await ask('GET /v1/health HTTP/1.0\r\n\r\n')).status).toBe(200)
    for (const target of ['/aaaaaaaaaa/v1/health', '//aaaaaaaa/v1/health', '//localhost/v1/health']) {
      expect((await ask(`GET ${target} HTTP/1.0\r\n\r\n`)).status).toBe(404)
    }
  })

  test.each([
    ['http://evil.example/v1/health', 200],
    ['https://evil.example/v1/health', 200],
    ['http://x/v1/health', 200],
    ['http://x/aa/v1/health', 404],
    ['http://evil.example', 404],
    ['http://evil.example?/v1/health', 404],
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
    // The URL standard removes dot segments and turns backslashes round before anything is routed; to the same path
    // that a proxy in front sees when it does so too.
    ['/v1/../v1/health', 200],
    ['/v1/%2e%2e/v1/health', 200],
    ['/v1/projects/../health', 200],
    ['/v1/health/../projects', 401],
    ['/..//v1/health', 404],
    ['evil.example/v1/health', 400],
    ['v1/health', 400],
    ['*', 400],
    ['?x', 400],
    ['', 400],
    ['ftp://x/v1/health', 400],
    [`/${'a'.repeat(20_000)}`, 431],
  ])('of the target %s: %d', async (target, status) => {
    expect((await ask(get(target, 'Host: localhost'))).status).toBe(status)
  })

  test('but OPTIONS * is of no path', async () => {
    expect((await ask('OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')).status).toBe(400)
  })
})

describe('a Host that could move the path', () => {
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
  ])('is refused: %s', async (host) => {
    const answer = await ask(get('/v1/health', `Host: ${host}`))
    const details = [{ in: 'header', path: 'host', code: 'INVALID' }]
    expectError(answer, 400, { code: 'INVALID_ARGUMENT', details })
  })

  test('is refused when there are two, and when HTTP/1.1 has none', async () => {
    expect((await ask(get('/v1/health', 'Host: a.example', 'Host: b.example'))).status).toBe(400)
    expect((await ask(get('/v1/health', 'Host: a.example', 'Host: b/x'))).status).toBe(400)
    expect((await ask(get('/v1/health'))).status).toBe(400)
  })
})

describe('methods', () => {
  test.each(['TRACE', 'PROPFIND', 'QUERY', 'SEARCH', 'LINK', 'OPTIONS', 'PUT', 'CONNECT'])(
    '%s is 405 and nothing is echoed',
    async (method) => {
      for (const host of ['localhost', 'x']) {
        const answer = await ask(`${method} /v1/health HTTP/1.1\r\nHost: ${host}\r\nX-Canary: canary\r\n\r\n`)
        expectError(answer, 405, { code: 'METHOD_NOT_ALLOWED' })
        expect(answer.headers.get('allow')).toBe('GET, HEAD')
        expect(answer.body).not.toContain('canary')
      }
    },
  )

  test('that no standard knows end the connection', async () => {
    for (const method of ['FOO', 'get', 'X'.repeat(300)]) {
      const exchange = await exchangeRaw(port, [`${method} /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n`])
      expect(exchange).toEqual({ answers: [], closed: true })
    }
  })

  test('HEAD has no body, whatever the status', async () => {
    for (const target of ['/v1/health', '/v1/projects', '/nothing']) {
      const { answers } = await exchangeRaw(
        port,
        [`HEAD ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`],
        Infinity,
      )
      // The length is that of GET, but nothing follows; the reader of this test would wait for it.
      expect(answers).toEqual([])
    }
    expect(calls.map(({ method, status }) => [method, status])).toEqual([
      ['HEAD', 200],
      ['HEAD', 401],
      ['HEAD', 404],
    ])
  })
})

describe('nothing is smuggled behind', () => {
  const hidden = 'GET /v1/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const post = (...headers: string[]) =>
    ['POST /v1/otp/send HTTP/1.1', 'Host: localhost', ...headers, '', ''].join('\r\n')

  test.each([
    [
      'a length beside chunks',
      post('Content-Length: 5', 'Transfer-Encoding: chunked') + `0\r\n\r\n${hidden}`,
    ],
    ['two lengths', post('Content-Length: 0', 'Content-Length: 44') + hidden],
    ['two lengths in one', post('Content-Length: 0, 44') + hidden],
    ['an unknown coding', post('Transfer-Encoding: xchunked') + `0\r\n\r\n${hidden}`],
    ['two codings', post('Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + `0\r\n\r\n${hidden}`],
    [
      'a coding behind a space',
      post('Transfer-Encoding : chunked', 'Content-Length: 5') + `0\r\n\r\n${hidden}`,
    ],
    ['a folded header', post('X: a', ' Transfer-Encoding: chunked', 'Content-Length: 0') + hidden],
    ['a negative length', post('Content-Length: -1') + hidden],
    ['a signed length', post('Content-Length: +5') + `hello${hidden}`],
    ['a hexadecimal length', post('Content-Length: 0x5') + `hello${hidden}`],
    ['an endless length', post('Content-Length: 99999999999999999999') + hidden],
    ['a chunk of a negative size', post('Transfer-Encoding: chunked') + `-1\r\nhello\r\n0\r\n\r\n${hidden}`],
    ['a chunk of no size', post('Transfer-Encoding: chunked') + `zz\r\nhello\r\n0\r\n\r\n${hidden}`],
    [
      'a chunk of an endless size',
      post('Transfer-Encoding: chunked') + `ffffffffffffffff1\r\nh\r\n0\r\n\r\n${hidden}`,
    ],
    ['a header with NUL', get('/v1/health', 'Host: localhost', 'X: a\0b') + hidden],
    ['a header without a name', get('/v1/health', 'Host: localhost', ': x') + hidden],
    [
      'a bare carriage return',
      get('/v1/health', 'Host: localhost', 'X: a\rTransfer-Encoding: chunked') + hidden,
    ],
    ['TLS', `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03${hidden}`],
    ['HTTP/2', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${hidden}`],
  ])('%s', async (_, bytes) => {
    const { answers, closed } = await exchangeRaw(port, [bytes], Infinity)
    expect(closed).toBe(true)
    expect(answers.filter(({ status }) => status < 400)).toEqual([])
    expect(calls.filter(({ route }) => route === '/v1/health/ready')).toEqual([])
  })

  test('and calls one after the other on a connection are answered in their order', async () => {
    const requests = ['/v1/health', '/nothing', '/v1/projects', '/v1/health/ready'].map((target) =>
      get(target, 'Host: localhost').replace('Connection: close\r\n', ''),
    )
    const { answers } = await exchangeRaw(port, [requests.join('')], 4)
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 401, 200])
    const body = '{"a":'
    const { answers: posts } = await exchangeRaw(
      port,
      [post('Content-Type: application/json', `Content-Length: ${body.length}`) + body + hidden],
      2,
    )
    expect(posts.map(({ status }) => status)).toEqual([400, 200])
  })
})

describe('a body', () => {
  const send = (...headers: string[]) =>
    [
      'POST /v1/otp/send HTTP/1.1',
      'Host: localhost',
      'Content-Type: application/json',
      ...headers,
      'Connection: close',
      '',
      '',
    ].join('\r\n')
  const json = (length: number) => `{"x":"${'x'.repeat(length - 8)}"}`
  const chunked = (body: string, size: number) => {
    const parts: string[] = []
    for (let at = 0; at < body.length; at += size) {
      const part = body.slice(at, at + size)
      parts.push(`${part.length.toString(16)}\r\n${part}\r\n`)
    }
    return [...parts, '0\r\n\r\n']
  }

  test('of 64 KiB is read, announced or not', async () => {
    const body = json(65_536)
    expectError(await ask(send('Content-Length: 65536'), body), 401, { code: 'UNAUTHENTICATED' })
    expectError(await ask(send('Transfer-Encoding: chunked'), ...chunked(body, 5000)), 401, {
      code: 'UNAUTHENTICATED',
    })
  })

  test.each([65_537, 2_000_000, 20_000_000])('of %d bytes is 413, announced or not', async (length) => {
    const tooLarge = { code: 'PAYLOAD_TOO_LARGE', metadata: { bytesMax: 65_536 } }
    const body = json(length)
    expectError(await ask(send(`Content-Length: ${length}`), body), 413, tooLarge)
    expectError(await ask(send('Transfer-Encoding: chunked'), ...chunked(body, length)), 413, tooLarge)
    expectError(await ask(send('Transfer-Encoding: chunked'), ...chunked(body, 50_000)), 413, tooLarge)
  })

  test('that is only announced is 413 at once', async () => {
    for (const length of [65_537, 2_000_000, Number.MAX_SAFE_INTEGER - 1]) {
      expectError(await ask(send(`Content-Length: ${length}`)), 413, { code: 'PAYLOAD_TOO_LARGE' })
    }
  })

  test('that nobody asked for changes nothing', async () => {
    const request = get('/v1/health', 'Host: localhost', 'Content-Length: 2')
    expect((await ask(`${request}{}`)).status).toBe(200)
    const stray = send('Transfer-Encoding: chunked').replace('/v1/otp/send', '/nothing')
    expectError(await ask(stray, ...chunked(json(2_000_000), 100_000)), 404, { reason: 'ROUTE_NOT_FOUND' })
  })

  test('comes byte by byte too, and after 100 Continue', async () => {
    const body = '{"phone":1}'
    const parts = [send(`Content-Length: ${body.length}`), ...body]
    expectError(await ask(...parts), 401, { code: 'UNAUTHENTICATED' })
    const waiting = send(`Content-Length: ${body.length}`, 'Expect: 100-continue')
    expectError(await ask(waiting, body), 401, { code: 'UNAUTHENTICATED' })
  })

  test('that breaks off is nobody’s fault', async () => {
    for (const head of [send('Content-Length: 100'), send('Transfer-Encoding: chunked') + '64\r\n']) {
      calls = []
      const { promise, resolve } = Promise.withResolvers<void>()
      onCall = resolve
      const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
      socket.write(`${head}{"phone":`)
      socket.flush()
      await new Promise((next) => setImmediate(next))
      socket.terminate()
      await promise
      onCall = () => {}
      expect(calls).toMatchObject([{ method: 'POST', route: '/v1/otp/send', status: 400 }])
    }
    expect(bugs).toEqual([])
  })
})

describe('the listener', () => {
  const needs = {
    newId: () => 'req_00000000000000000000000000',
    onBug: (error: unknown) => void bugs.push(error),
  }

  test('tells the address of the caller, also to a request with a short Host', async () => {
    const app = new Elysia().get(
      '/',
      ({ request, server }) => server?.requestIP(request)?.address ?? 'unknown',
    )
    const own = listen({ host: '127.0.0.1', port: 0 }, app, needs)
    for (const host of ['localhost', 'x']) {
      const { answers } = await exchangeRaw(portOf(own), [get('/', `Host: ${host}`)])
      expect(answers[0]?.body).toBe('127.0.0.1')
    }
    await own.stop(0)
  })

  test('answers the error of the contract where an application falls over', async () => {
    const app = new Elysia()
      .onError(() => {
        throw new Error('a secret')
      })
      .get('/', () => 'never')
    const own = listen({ host: '127.0.0.1', port: 0 }, app, needs)
    const { answers } = await exchangeRaw(portOf(own), [get('/nothing', 'Host: localhost')])
    const [answer] = answers
    if (!answer) throw new Error('no answer')
    expectError(answer, 500, { code: 'INTERNAL', message: 'Something went wrong on our side.' })
    expect(bugs).toHaveLength(1)
    await own.stop(0)
  })

  test('finishes the calls under way when it stops, and takes no more', async () => {
    const [begun, gate] = [createGate(), createGate()]
    const app = new Elysia().get('/', async () => {
      begun.open()
      await gate.opened
      return 'done'
    })
    const own = listen({ host: '127.0.0.1', port: 0 }, app, needs)
    const answer = exchangeRaw(portOf(own), [get('/', 'Host: localhost')])
    await begun.opened
    const stopped = own.stop(60_000)
    await expect(exchangeRaw(portOf(own), [get('/', 'Host: localhost')])).rejects.toThrow()
    gate.open()
    expect((await answer).answers).toMatchObject([{ status: 200, body: 'done' }])
    await stopped
  })

  test('cuts what does not finish in time', async () => {
    const begun = createGate()
    const app = new Elysia().get('/', () => {
      begun.open()
      return new Promise<string>(() => {})
    })
    const own = listen({ host: '127.0.0.1', port: 0 }, app, needs)
    const answer = exchangeRaw(portOf(own), [get('/', 'Host: localhost')])
    await begun.opened
    await own.stop(0)
    expect(await answer).toEqual({ answers: [], closed: true })
  })

  test('tells of each call by the pattern of its route, never by its path', async () => {
    await ask(get('/v1/users/%2B14155550100?x=1', 'Host: localhost'))
    await ask(get('/v1/otp/14155550100/', 'Host: x'))
    await ask(get('/+14155550100', 'Host: localhost'))
    expect(calls).toMatchObject([
      { method: 'GET', route: '/v1/users/:phoneNumber', status: 401 },
      { method: 'GET', route: '/v1/otp/:id', status: 401 },
      { method: 'GET', route: null, status: 404 },
    ])
    for (const call of calls) {
      expect(JSON.stringify(call)).not.toContain('4155550100')
      expect(call.traceId).toMatch(/^req_/)
      expect(call.durationMs).toBeGreaterThanOrEqual(0)
    }
  })
})
