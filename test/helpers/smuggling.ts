/** Request hidden behind one with an ambiguous end. It must never be answered. */
export const smuggledRequest = 'GET /v1/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** Builds the head of a request with a body. */
export const postHead = (...headers: string[]) =>
  ['POST /v1/otp/send HTTP/1.1', 'Host: localhost', ...headers, '', ''].join('\r\n')

const getHead = (...headers: string[]) =>
  ['GET /v1/health HTTP/1.1', 'Host: localhost', ...headers, 'Connection: close', '', ''].join('\r\n')

/** Request-smuggling attempts: two parsers may disagree where the request ends (RFC 9112 §6.3). */
export const smugglingRequests: ReadonlyArray<readonly [name: string, bytes: string]> = [
  [
    'a length and chunks',
    postHead('Content-Length: 5', 'Transfer-Encoding: chunked') + `0\r\n\r\n${smuggledRequest}`,
  ],
  ['two lengths', postHead('Content-Length: 0', 'Content-Length: 44') + smuggledRequest],
  ['two lengths in one', postHead('Content-Length: 0, 44') + smuggledRequest],
  ['an unknown coding', postHead('Transfer-Encoding: xchunked') + `0\r\n\r\n${smuggledRequest}`],
  [
    'two codings',
    postHead('Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + `0\r\n\r\n${smuggledRequest}`,
  ],
  [
    'a coding after a space',
    postHead('Transfer-Encoding : chunked', 'Content-Length: 5') + `0\r\n\r\n${smuggledRequest}`,
  ],
  ['a folded header', postHead('X: a', ' Transfer-Encoding: chunked', 'Content-Length: 0') + smuggledRequest],
  ['a negative length', postHead('Content-Length: -1') + smuggledRequest],
  ['a signed length', postHead('Content-Length: +5') + `hello${smuggledRequest}`],
  ['a hexadecimal length', postHead('Content-Length: 0x5') + `hello${smuggledRequest}`],
  ['an endless length', postHead('Content-Length: 99999999999999999999') + smuggledRequest],
  [
    'a chunk of a negative size',
    postHead('Transfer-Encoding: chunked') + `-1\r\nhello\r\n0\r\n\r\n${smuggledRequest}`,
  ],
  [
    'a chunk of no size',
    postHead('Transfer-Encoding: chunked') + `zz\r\nhello\r\n0\r\n\r\n${smuggledRequest}`,
  ],
  [
    'a chunk of an endless size',
    postHead('Transfer-Encoding: chunked') + `ffffffffffffffff1\r\nh\r\n0\r\n\r\n${smuggledRequest}`,
  ],
  ['a header with NUL', getHead('X: a\0b') + smuggledRequest],
  ['a header without a name', getHead(': x') + smuggledRequest],
  ['a bare carriage return', getHead('X: a\rTransfer-Encoding: chunked') + smuggledRequest],
  ['TLS', `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03${smuggledRequest}`],
  ['HTTP/2', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${smuggledRequest}`],
]
