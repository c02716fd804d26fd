import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { exchangeRaw } from '../helpers/raw-http.ts'
import { getRequest, startRawService, type RawService } from '../helpers/raw-service.ts'
import { smuggledRequest, postHead, smugglingRequests } from '../helpers/smuggling.ts'

let raw: RawService
let port: number

beforeAll(async () => {
  raw = await startRawService()
  port = raw.port
})
beforeEach(() => raw.reset())
afterAll(() => raw.dispose())

describe('no request is smuggled by', () => {
  test.each(smugglingRequests)('%s', async (_, bytes) => {
    const { responses, closed } = await exchangeRaw(port, [bytes], Infinity)
    expect(closed).toBe(true)
    expect(responses.filter(({ status }) => status < 400)).toEqual([])
    expect(raw.calls.filter(({ route }) => route === '/v1/health/ready')).toEqual([])
  })

  test('pipelined requests, which are answered in order', async () => {
    const requests = ['/v1/health', '/nothing', '/v1/projects', '/v1/health/ready'].map((target) =>
      getRequest(target, 'Host: localhost').replace('Connection: close\r\n', ''),
    )
    const { responses } = await exchangeRaw(port, [requests.join('')], 4)
    expect(responses.map(({ status }) => status)).toEqual([200, 404, 401, 200])
    const body = '{"a":'
    const { responses: posts } = await exchangeRaw(
      port,
      [postHead('Content-Type: application/json', `Content-Length: ${body.length}`) + body + smuggledRequest],
      2,
    )
    expect(posts.map(({ status }) => status)).toEqual([400, 200])
  })
})

describe('a request behind a refused one', () => {
  let logins = 0
  /** Its password is hashed in another thread, so its response is pending for a while. */
  const login = () => {
    const form = `grant_type=password&username=user${logins++}%40example.com&password=wrong%20horse`
    const head = ['POST /v1/auth/token HTTP/1.1', 'Host: localhost', `Content-Length: ${form.length}`]
    const type = 'Content-Type: application/x-www-form-urlencoded'
    return [...head, type, '', form].join('\r\n')
  }
  const refused: Array<[string, string]> = [
    ['404', 'GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['400', 'GET /v1/health HTTP/1.1\r\nHost: a/b\r\n\r\n'],
    ['401', postHead('Content-Type: application/json', 'Content-Length: 2') + '{}'],
    ['413', postHead('Content-Length: 70000') + 'x'.repeat(70_000)],
    ['413 in chunks', `${postHead('Transfer-Encoding: chunked')}11170\r\n${'x'.repeat(70_000)}\r\n0\r\n\r\n`],
  ]
  const behind: Array<[string, () => string[]]> = [
    ['alone', () => [login()]],
    ['followed by another', () => [login(), smuggledRequest]],
    ['followed by two others', () => [login(), login(), smuggledRequest]],
  ]
  const cases = refused.flatMap(([status, first]) =>
    behind.map(([place, makeRest]) => [status, place, first, makeRest] as const),
  )

  test.each(cases)('with %s, %s, is answered or not executed', async (_status, place, first, makeRest) => {
    const requests = [first, ...makeRest()]
    const { responses } = await exchangeRaw(port, [requests.join('')], requests.length)
    // Hashed after the passwords of the requests above.
    await raw.request(login().replace('Host: localhost', 'Host: localhost\r\nConnection: close'))
    const executed = raw.calls.filter(({ status }) => status !== 499).slice(0, -1)
    expect(responses).toHaveLength(executed.length)
    if (place === 'alone') expect(responses).toHaveLength(2)
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

  test('of 64 KiB is read, with or without Content-Length', async () => {
    const body = json(65_536)
    raw.expectError(await raw.request(send('Content-Length: 65536'), body), 401, { code: 'UNAUTHENTICATED' })
    raw.expectError(await raw.request(send('Transfer-Encoding: chunked'), ...chunked(body, 5000)), 401, {
      code: 'UNAUTHENTICATED',
    })
  })

  test.each([65_537, 2_000_000, 20_000_000])(
    'of %d bytes is 413, with or without Content-Length',
    async (length) => {
      const tooLarge = { code: 'PAYLOAD_TOO_LARGE', metadata: { bytesMax: 65_536 } }
      const body = json(length)
      raw.expectError(await raw.request(send(`Content-Length: ${length}`), body), 413, tooLarge)
      raw.expectError(
        await raw.request(send('Transfer-Encoding: chunked'), ...chunked(body, length)),
        413,
        tooLarge,
      )
      raw.expectError(
        await raw.request(send('Transfer-Encoding: chunked'), ...chunked(body, 50_000)),
        413,
        tooLarge,
      )
    },
  )

  test('with a Content-Length over the limit is 413 before it is sent', async () => {
    for (const length of [65_537, 2_000_000, Number.MAX_SAFE_INTEGER - 1]) {
      raw.expectError(await raw.request(send(`Content-Length: ${length}`)), 413, {
        code: 'PAYLOAD_TOO_LARGE',
      })
    }
  })

  test('that the route does not expect changes nothing', async () => {
    const request = getRequest('/v1/health', 'Host: localhost', 'Content-Length: 2')
    expect((await raw.request(`${request}{}`)).status).toBe(200)
    const stray = send('Transfer-Encoding: chunked').replace('/v1/otp/send', '/nothing')
    raw.expectError(await raw.request(stray, ...chunked(json(2_000_000), 100_000)), 404, {
      reason: 'ROUTE_NOT_FOUND',
    })
  })

  test('is accepted byte by byte, and after 100 Continue', async () => {
    const body = '{"phone":1}'
    const parts = [send(`Content-Length: ${body.length}`), ...body]
    raw.expectError(await raw.request(...parts), 401, { code: 'UNAUTHENTICATED' })
    const waiting = send(`Content-Length: ${body.length}`, 'Expect: 100-continue')
    raw.expectError(await raw.request(waiting, body), 401, { code: 'UNAUTHENTICATED' })
    for (const expectation of ['200-ok', '100-continue, 200-ok']) {
      const asking = send(`Content-Length: ${body.length}`, `Expect: ${expectation}`)
      raw.expectError(await raw.request(asking, body), 417, { code: 'EXPECTATION_FAILED' })
    }
  })

  test('that is cut off is 400 and not reported as a bug', async () => {
    for (const head of [send('Content-Length: 100'), send('Transfer-Encoding: chunked') + '64\r\n']) {
      raw.reset()
      const answered = raw.nextResponse()
      const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
      socket.write(`${head}{"phone":`)
      socket.flush()
      await new Promise((next) => setImmediate(next))
      socket.terminate()
      await answered
      expect(raw.calls).toMatchObject([{ method: 'POST', route: '/v1/otp/send', status: 400 }])
    }
    expect(raw.bugs).toEqual([])
  })
})
