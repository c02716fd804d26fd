import { connect } from 'node:net'
import { startServer } from '../helpers/binary.ts'
import { smuggledRequest, postHead, smugglingRequests } from '../helpers/smuggling.ts'
import { formatElapsed, type FuzzPart } from './fuzz-part.ts'
import { pick, seededRandom } from '../helpers/seeded-random.ts'

/** Maximum number of open connections. */
const concurrency = 32
/** Longer than Bun waits for the rest of a request, about 12 s. */
const timeoutMs = 60_000

type Random = () => number
type Attack = {
  name: string
  bytes: string
  /** True if no call may succeed, because the only valid request is hidden in another. */ isHidden: boolean
}

export const raw: FuzzPart = {
  name: 'raw',
  title: 'raw bytes that an HTTP client would not send, against the compiled binary',
  async run({ runs, seed }, print) {
    const started = performance.now()
    const server = await startServer({ env: { OTPD_LOG_LEVEL: 'warn', OTPD_CONSOLE_PER_MINUTE: '0' } })
    const { hostname, port } = new URL(server.url)
    const random = seededRandom(seed)
    const findings: string[] = []
    const statuses: Record<string, number> = {}

    async function attack({ name, bytes, isHidden }: Attack) {
      const response = await send(hostname, Number(port), bytes)
      const statusCodes = [...response.matchAll(/(?:^|\r\n|\})HTTP\/1\.1 (\d{3})/g)].map(
        ([, status]) => status ?? '',
      )
      for (const status of statusCodes.length > 0 ? statusCodes : ['closed'])
        statuses[status] = (statuses[status] ?? 0) + 1
      const report = (problem: string) =>
        findings.push(`${name}: ${problem}, seed ${seed}, ${JSON.stringify(bytes)}`)
      if (response === noResponse) report('neither answered nor closed')
      // Bun itself answers 505 to an invalid HTTP version (RFC 9110 §15.6.6).
      if (statusCodes.some((status) => status >= '500' && status !== '505'))
        report(`answered ${statusCodes.join()}`)
      if (isHidden && statusCodes.some((status) => status < '400' && status !== '100'))
        report(`answered ${statusCodes.join()}`)
      if (/ at |\.ts\b|node_modules|SQLITE/.test(response)) report('the response reveals internals')
    }

    try {
      const attacks = makeAttacks(runs, random)
      const worker = async () => {
        for (let next = attacks.next(); !next.done && findings.length < 20; next = attacks.next())
          await attack(next.value)
      }
      await Promise.all(Array.from({ length: concurrency }, worker))
      const health = await fetch(`${server.url}/v1/health`)
      if (health.status !== 200) findings.push(`The server is no longer healthy: ${health.status}.`)
      for (const line of server.log().split('\n')) if (line.includes('"level":"error"')) findings.push(line)
      const counts = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`)
      print(
        `${smugglingRequests.length} fixed and ${3 * runs} random requests, ${formatElapsed(started)}: ${counts.join(', ')}`,
      )
      return findings
    } finally {
      await server.stop()
    }
  },
}

function* makeAttacks(runs: number, random: Random): Generator<Attack> {
  for (const [name, bytes] of smugglingRequests) yield { name, bytes, isHidden: true }
  for (let run = 0; run < runs; run++) {
    yield { name: 'a request inside a body', bytes: embedSmuggledRequest(random), isHidden: true }
    yield { name: 'an ambiguous end', bytes: ambiguousLengthRequest(random), isHidden: true }
    const [, bytes] = pick(smugglingRequests, random)
    yield { name: 'damaged bytes', bytes: mutate(bytes, random), isHidden: false }
  }
}

const repeat = <T>(times: number, make: () => T): T[] => Array.from({ length: times }, make)

/** Returns random headers that do not affect where the request ends. */
function randomHeaders(random: Random): string[] {
  const letters = 'abcXYZ019-_.!~'
  const randomWord = (max: number) =>
    repeat(1 + Math.floor(random() * max), () => pick([...letters], random)).join('')
  const values = [
    '',
    randomWord(30),
    `"${randomWord(5)}"`,
    'chunked',
    '0',
    '\t',
    smuggledRequest.slice(0, 24),
    '\xff\x80',
    'a,b;q=1',
  ]
  const names = [
    'Accept',
    'Cookie',
    'X-Length',
    'Content-Lengthy',
    'X-Transfer-Encoding',
    'Trailer',
    'Authorization',
  ]
  return repeat(
    Math.floor(random() * 5),
    () => `${pick([...names, `X-${randomWord(8)}`], random)}: ${pick(values, random)}`,
  )
}

/** Builds a valid request with another one in its body. */
function embedSmuggledRequest(random: Random): string {
  const body = repeat(1 + Math.floor(random() * 3), () =>
    pick([smuggledRequest, '{}', '\r\n', '0\r\n\r\n'], random),
  ).join('')
  const payload = `${body}${smuggledRequest}`
  const type = random() < 0.5 ? ['Content-Type: application/json'] : []
  const more = [...randomHeaders(random), ...type, 'Connection: close']
  if (random() < 0.5) return postHead(...more, `Content-Length: ${payload.length}`) + payload
  const chunks: string[] = []
  for (let position = 0; position < payload.length;) {
    const size = 1 + Math.floor(random() * payload.length)
    const part = payload.slice(position, position + size)
    const extension = random() < 0.2 ? ';a=b' : ''
    chunks.push(`${part.length.toString(16)}${extension}\r\n${part}\r\n`)
    position += size
  }
  return `${postHead(...more, 'Transfer-Encoding: chunked')}${chunks.join('')}0\r\n\r\n`
}

/** Builds a request whose length is given twice, or in an invalid way. */
function ambiguousLengthRequest(random: Random): string {
  const lengths = ['-1', '+5', '0x5', '5, 6', '5 5', '99999999999999999999', '1e1', '5;', '٥', 'NaN', '0,44']
  const codings = [
    'xchunked',
    'chunked, identity',
    'identity, chunked',
    'gzip',
    'chunked;q=1',
    '"chunked"',
    'chunked chunked',
    'x',
  ]
  const ends = [
    [`Content-Length: ${pick(lengths, random)}`],
    [`Transfer-Encoding: ${pick(codings, random)}`],
    ['Content-Length: 5', 'Transfer-Encoding: chunked'],
    ['Transfer-Encoding: chunked', 'Content-Length: 5'],
    ['Content-Length: 0', 'Content-Length: 44'],
    ['Content-Length : 5'],
    ['Transfer-Encoding : chunked'],
    ['Transfer-Encoding\t: chunked'],
    ['Transfer-Encoding: chunked', `Transfer-Encoding: ${pick(codings, random)}`],
  ]
  const headers = [...randomHeaders(random), ...pick(ends, random), ...randomHeaders(random)]
  return (
    postHead(...headers) +
    pick(['', '0\r\n\r\n', 'hello', '5\r\nhello\r\n0\r\n\r\n'], random) +
    smuggledRequest
  )
}

function mutate(bytes: string, random: Random): string {
  const oddBytes = [
    '\0',
    '\r',
    '\n',
    '\r\n',
    ' ',
    '\t',
    ':',
    '\x7f',
    '\xff',
    '%',
    '/',
    '?',
    '#',
    ';',
    ',',
    '0',
    'HTTP/1.1',
    '\r\n\r\n',
  ]
  let text = bytes
  for (let times = 1 + Math.floor(random() * 6); times > 0; times--) {
    const position = Math.floor(random() * text.length)
    const length = Math.floor(random() * 4)
    const kind = random()
    if (kind < 0.1) text = text.slice(0, position)
    else if (kind < 0.2)
      text = text.slice(0, position) + text.slice(position, position + 40) + text.slice(position)
    else text = text.slice(0, position) + pick([...oddBytes, ''], random) + text.slice(position + length)
  }
  return text
}

const noResponse = '(hanging)'

/** Sends bytes and half-closes. @returns everything received until the server closed the connection */
function send(host: string, port: number, bytes: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let received = ''
  const socket = connect({ host, port, allowHalfOpen: true })
  const timer = setTimeout(() => {
    resolve(noResponse)
    socket.destroy()
  }, timeoutMs)
  const done = () => {
    clearTimeout(timer)
    resolve(received)
    socket.destroy()
  }
  socket.on('connect', () => socket.end(Buffer.from(bytes, 'latin1')))
  socket.on('data', (chunk) => (received += chunk.toString('latin1')))
  socket.on('end', done)
  socket.on('close', done)
  socket.on('error', done)
  return promise
}
