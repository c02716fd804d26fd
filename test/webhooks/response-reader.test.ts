import { describe, expect, test } from 'bun:test'
import { createResponseReader, type ReadState } from '../../src/webhooks/response-reader.ts'

/** Reads a response in pieces of the given size. */
function read(text: string, size = text.length) {
  const reader = createResponseReader()
  const bytes = Buffer.from(text, 'latin1')
  let state: ReadState = 'partial'
  for (let at = 0; at < bytes.length && state === 'partial'; at += size)
    state = reader.read(bytes.subarray(at, at + size))
  const response = reader.response()
  return {
    state,
    status: response?.statusCode,
    body: response?.body.toString('latin1'),
    isReusable: reader.isReusable(),
    retryAfter: response?.retryAfter,
  }
}

const head = (...lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`
const ok = 'HTTP/1.1 200 OK'
const chunked = 'transfer-encoding: chunked'

describe('a response', () => {
  const responses: Array<[string, ReturnType<typeof read>]> = [
    [`${head(ok, 'content-length: 2')}ok`, complete(200, 'ok')],
    [head('HTTP/1.1 204'), complete(204, '')],
    [head('HTTP/1.1 304 Not Modified', 'content-length: 9'), complete(304, '')],
    [head(ok, 'Content-Length:0', 'x: caf\xe9 \t'), complete(200, '')],
    [`${head(ok, 'content-length: 2', 'content-length: 2')}ok`, complete(200, 'ok')],
    [`${head(ok, chunked)}2\r\nab\r\n0A;x=" y"\r\n0123456789\r\n0\r\n\r\n`, complete(200, 'ab0123456789')],
    [`${head(ok, 'Transfer-Encoding: CHUNKED')}0\r\nx-trailer: 1\r\n\r\n`, complete(200, '')],
    [`${head('HTTP/1.1 103 Early Hints', 'link: </a>')}${head('HTTP/1.1 204 x')}`, complete(204, '')],
    [`${head(ok, 'connection: x, Close', 'content-length: 2')}ok`, complete(200, 'ok', false)],
    [`${head('HTTP/1.0 200 OK', 'content-length: 2')}ok`, complete(200, 'ok', false)],
    [
      head('HTTP/1.1 429 Slow', 'content-length: 0', 'Retry-After:  7 '),
      { ...complete(429, ''), retryAfter: '7' },
    ],
  ]
  function complete(status: number, body: string, isReusable = true): ReturnType<typeof read> {
    return { state: 'complete', status, body, isReusable, retryAfter: undefined }
  }

  test.each(responses)('%j is read the same in pieces of any size', (text, expected) => {
    for (let size = 1; size <= text.length; size++) expect(read(text, size)).toEqual(expected)
  })

  test('without a length lasts until the connection ends', () => {
    expect(read(`${head(ok)}all of it`)).toMatchObject({ state: 'partial', status: 200, body: 'all of it' })
  })

  test('leaves the connection unusable if anything follows it', () => {
    expect(read(`${head(ok, 'content-length: 2')}okHTTP/1.1 200`)).toMatchObject({
      isReusable: false,
      body: 'ok',
    })
    expect(read(`${head(ok, chunked)}0\r\n\r\n0\r\n\r\n`)).toMatchObject({
      state: 'complete',
      isReusable: false,
    })
    expect(read(`${head('HTTP/1.1 204 No Content')}body`)).toMatchObject({ isReusable: false, body: '' })
  })

  test('keeps 4 KiB of its body, and is read no further than 16 KiB', () => {
    const kept = { state: 'complete', status: 200, body: 'x'.repeat(4096), isReusable: false } as const
    const full = { ...kept, isReusable: true }
    expect(read(`${head(ok, 'content-length: 16383')}${'x'.repeat(16_383)}`, 500)).toMatchObject(full)
    expect(read(`${head(ok, 'content-length: 1000000')}${'x'.repeat(17_000)}`, 500)).toMatchObject(kept)
    expect(read(`${head(ok)}${'x'.repeat(17_000)}`, 500)).toMatchObject(kept)
    expect(read(`${head(ok, chunked)}${'1;y=z\r\nx\r\n'.repeat(20_000)}`, 500).state).toBe('complete')
  })
})

describe('a head', () => {
  test.each([
    'SSH-2.0-OpenSSH_9.2',
    'HTTP/1.2 200 OK',
    'HTTP/2 200 OK',
    'http/1.1 200 OK',
    'HTTP/1.1  200 OK',
    'HTTP/1.1 20 OK',
    'HTTP/1.1 2000 OK',
    'HTTP/1.1 099 OK',
    'HTTP/1.1 600 OK',
    'HTTP/1.1 200 O\0K',
    'HTTP/1.1 200 OK\ncontent-length: 2',
    'HTTP/1.1 101 Switching Protocols',
    ' HTTP/1.1 200 OK',
  ])('that begins with %j is malformed', (line) => {
    expect(read(head(line))).toMatchObject({ state: 'malformed', status: undefined, isReusable: false })
  })

  const malformedLines: string[][] = [
    ['content-length: 2', 'content-length: 3'],
    ['content-length: 2, 2'],
    ['content-length: +2'],
    ['content-length: 2x'],
    ['content-length: -1'],
    ['content-length:'],
    ['content-length: 9999999999999999'],
    ['content-length: 2', chunked],
    [chunked, chunked],
    ['transfer-encoding: gzip, chunked'],
    ['transfer-encoding: identity'],
    ['transfer-encoding: xchunked'],
    ['content-length : 2'],
    ['content-length\t: 2'],
    ['x: 1', ' folded: 2'],
    ['no colon'],
    [': no name'],
    ['x: a\rb'],
    ['x: a\nb'],
    ['x: a\0b'],
  ]
  test.each(malformedLines.map((lines) => [lines] as const))('with %j is malformed', (lines) => {
    const text = `${head(ok, ...lines)}ok`
    for (let size = 1; size <= text.length; size++)
      expect(read(text, size)).toMatchObject({ state: 'malformed', status: undefined, isReusable: false })
  })

  test('may not be chunked in HTTP/1.0', () => {
    expect(read(`${head('HTTP/1.0 200 OK', chunked)}0\r\n\r\n`).state).toBe('malformed')
  })

  test('of more than 16 KiB is malformed, whether or not it ends', () => {
    const flood = `x: ${'y'.repeat(100)}\r\n`.repeat(200)
    expect(read(`${ok}\r\n${flood}`, 1_000).state).toBe('malformed')
    expect(read(`${ok}\r\n${flood}\r\n`).state).toBe('malformed')
  })

  test('is parsed in linear time, with any content', () => {
    const startedAt = performance.now()
    for (const filler of [' ', '\t', ':', 'a', '\r']) read(`${ok}\r\nx:${filler.repeat(16_000)}\0\r\n\r\n`)
    expect(performance.now() - startedAt).toBeLessThan(1_000)
  })

  test('may follow ten interim responses, and no more', () => {
    const interim = head('HTTP/1.1 100 Continue')
    expect(read(`${interim.repeat(10)}${head('HTTP/1.1 204')}`)).toMatchObject({
      status: 204,
      isReusable: true,
    })
    expect(read(`${interim.repeat(11)}${head('HTTP/1.1 204')}`)).toMatchObject({
      status: undefined,
      state: 'malformed',
    })
  })
})

describe('a chunk', () => {
  test.each([
    'x\r\n',
    '\r\n',
    '-1\r\n',
    '0x1\r\n',
    '123456789\r\n',
    ' 1\r\na\r\n0\r\n\r\n',
    '1 x\r\n',
    '1;\0\r\n',
    '1;a\nb\r\n',
    '1\r\nab\r\n',
    '1\r\na0\r\n\r\n',
    '0\r\nno colon\r\n\r\n',
    `1;${'x'.repeat(2_000)}`,
    `0\r\nx: ${'x'.repeat(2_000)}`,
  ])('%j is malformed, but the status was received', (body) => {
    const text = head(ok, chunked) + body
    for (const size of [1, 7, text.length])
      expect(read(text, size)).toMatchObject({ state: 'malformed', status: 200, isReusable: false })
  })
})
