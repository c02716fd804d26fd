/** Longest head of a response, in bytes. */
const headBytesMax = 16 * 1024
/** Longest size line of a chunk, with its extensions, and longest trailer. */
const lineBytesMax = 1024
/** Bytes of a body, with its framing, after which reading stops. */
const bodyBytesReadMax = 16 * 1024
const bodyBytesKeptMax = 4 * 1024
/**
 * Limit for 1xx responses. RFC 9110 §15.2 allows any number before the final response; receivers need one or two.
 */
const interimResponsesMax = 10

/** `partial`: more bytes are needed. `malformed`: not HTTP/1.1, or larger than the limits allow. */
export type ReadState = 'partial' | 'complete' | 'malformed'

type ReceivedResponse = {
  statusCode: number
  /** Value of `Retry-After`. */
  retryAfter: string | undefined
  /** First 4 KiB of the body so far, without transfer coding. */
  body: Buffer
}

type ResponseReader = {
  /** Takes the next bytes of the connection, and no more after `complete` or `malformed`. */
  read(bytes: Buffer): ReadState
  /** The final response, once its head was read. */
  response(): ReceivedResponse | undefined
  /** Whether the connection can carry another request: the response was complete, and nothing follows it. */
  isReusable(): boolean
}

type Phase = 'head' | 'sized' | 'until-close' | 'chunk-size' | 'chunk-data' | 'chunk-end' | 'trailers'

/**
 * Parses the response to one POST, strictly (RFC 9112): a head that another parser could read differently is
 * malformed, because bytes taken for the next response would be credited to another webhook. Skips 1xx responses.
 */
export function createResponseReader(): ResponseReader {
  let phase: Phase = 'head'
  let head: Head | undefined
  let interimResponses = 0
  /** Beginning of a head or line whose end has not arrived. */
  let pending: Buffer | undefined
  let bytesLeft = 0
  let bodyBytesRead = 0
  let bodyBytesKept = 0
  const bodyParts: Buffer[] = []
  let isReusable = false

  /** Reads the head of the final response, and after it the beginning of the body. */
  function readHead(bytes: Buffer): ReadState {
    const end = bytes.indexOf('\r\n\r\n')
    if (end === -1 || end > headBytesMax) {
      if (bytes.length > headBytesMax) return 'malformed'
      pending = bytes
      return 'partial'
    }
    const parsed = parseHead(bytes.toString('latin1', 0, end))
    // After 101 the connection speaks another protocol, for which nothing asked.
    if (!parsed || parsed.statusCode === 101) return 'malformed'
    const rest = bytes.subarray(end + 4)
    if (parsed.statusCode < 200) {
      if (++interimResponses > interimResponsesMax) return 'malformed'
      return rest.length > 0 ? readHead(rest) : 'partial'
    }
    head = parsed
    phase = parsed.framing
    bytesLeft = parsed.contentLength
    return phase === 'sized' && bytesLeft === 0
      ? finish(rest, 0)
      : rest.length > 0
        ? readBody(rest)
        : 'partial'
  }

  function readBody(bytes: Buffer): ReadState {
    bodyBytesRead += bytes.length
    const state = readFramed(bytes)
    return state === 'partial' && bodyBytesRead >= bodyBytesReadMax ? 'complete' : state
  }

  function readFramed(bytes: Buffer): ReadState {
    if (phase === 'until-close') {
      keep(bytes)
      return 'partial'
    }
    if (phase === 'sized') {
      const size = Math.min(bytesLeft, bytes.length)
      keep(bytes.subarray(0, size))
      bytesLeft -= size
      return bytesLeft === 0 ? finish(bytes, size) : 'partial'
    }
    return readChunked(bytes)
  }

  function readChunked(bytes: Buffer): ReadState {
    for (let at = 0; ;) {
      if (phase === 'chunk-data') {
        const size = Math.min(bytesLeft, bytes.length - at)
        keep(bytes.subarray(at, at + size))
        at += size
        bytesLeft -= size
        if (bytesLeft > 0) return 'partial'
        phase = 'chunk-end'
      }
      const lineEnd = bytes.indexOf('\r\n', at)
      if ((lineEnd === -1 ? bytes.length : lineEnd) - at > lineBytesMax) return 'malformed'
      if (lineEnd === -1) {
        if (at < bytes.length) pending = bytes.subarray(at)
        return 'partial'
      }
      const line = bytes.toString('latin1', at, lineEnd)
      at = lineEnd + 2
      if (phase === 'trailers') {
        if (line === '') return finish(bytes, at)
        if (!parseHeader(line)) return 'malformed'
      } else if (phase === 'chunk-end') {
        if (line !== '') return 'malformed'
        phase = 'chunk-size'
      } else {
        const size = chunkSizeLine.exec(line)?.[1]
        if (size === undefined) return 'malformed'
        bytesLeft = parseInt(size, 16)
        phase = bytesLeft === 0 ? 'trailers' : 'chunk-data'
      }
    }
  }

  /** @param end where the response ends in `bytes` */
  function finish(bytes: Buffer, end: number): ReadState {
    isReusable = head?.isPersistent === true && bytes.length === end
    return 'complete'
  }

  function keep(bytes: Buffer) {
    const kept = bytes.subarray(0, bodyBytesKeptMax - bodyBytesKept)
    if (kept.length === 0) return
    bodyBytesKept += kept.length
    bodyParts.push(kept)
  }

  return {
    read(bytes) {
      const all = pending ? Buffer.concat([pending, bytes]) : bytes
      // A line that was read in part counts once.
      if (pending && phase !== 'head') bodyBytesRead -= pending.length
      pending = undefined
      return phase === 'head' ? readHead(all) : readBody(all)
    },
    response() {
      if (!head) return undefined
      const body = bodyParts.length === 1 && bodyParts[0] ? bodyParts[0] : Buffer.concat(bodyParts)
      return { statusCode: head.statusCode, retryAfter: head.retryAfter, body }
    },
    isReusable: () => isReusable,
  }
}

type Head = {
  statusCode: number
  framing: 'sized' | 'until-close' | 'chunk-size'
  contentLength: number
  /** Whether the receiver keeps the connection open. */
  isPersistent: boolean
  retryAfter: string | undefined
}

const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
/** The value begins with none of the spaces and tabs that belong to no value (RFC 9110 §5.6.3), and may end with some. */
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*((?:[!-~\x80-\xff][\t\x20-\x7e\x80-\xff]*)?)$/
const chunkSizeLine = /^([0-9A-Fa-f]{1,8})(?:[\t ]*;[\t\x20-\x7e\x80-\xff]*)?$/

/** @returns undefined if the head is malformed or its framing ambiguous */
function parseHead(text: string): Head | undefined {
  const [firstLine = '', ...lines] = text.split('\r\n')
  const [, minorVersion, status] = statusLine.exec(firstLine) ?? []
  if (status === undefined) return undefined
  let contentLength: string | undefined
  let isChunked = false
  let isPersistent = minorVersion === '1'
  let retryAfter: string | undefined
  for (const line of lines) {
    const field = parseHeader(line)
    if (!field) return undefined
    const { name, value } = field
    if (name === 'content-length') {
      if (!/^\d{1,15}$/.test(value) || (contentLength !== undefined && contentLength !== value))
        return undefined
      contentLength = value
    } else if (name === 'transfer-encoding') {
      // Only the one coding, once: nothing else was offered in the request.
      if (isChunked || value.toLowerCase() !== 'chunked') return undefined
      isChunked = true
    } else if (name === 'connection') {
      const options = value.toLowerCase().split(',')
      if (options.some((option) => option.trim() === 'close')) isPersistent = false
    } else if (name === 'retry-after') retryAfter ??= value
  }
  // RFC 9112 §6.1: both may be an attempt at response splitting, and chunked is unknown to HTTP/1.0.
  if (isChunked && (contentLength !== undefined || minorVersion === '0')) return undefined
  const statusCode = Number(status)
  const hasNoBody = statusCode < 200 || statusCode === 204 || statusCode === 304
  return {
    statusCode,
    framing: hasNoBody || contentLength !== undefined ? 'sized' : isChunked ? 'chunk-size' : 'until-close',
    contentLength: hasNoBody ? 0 : Number(contentLength ?? 0),
    isPersistent,
    retryAfter,
  }
}

/** @returns undefined for line folding, spaces before the colon and control characters */
function parseHeader(line: string): { name: string; value: string } | undefined {
  const [, name, value = ''] = fieldLine.exec(line) ?? []
  if (name === undefined) return undefined
  let end = value.length
  // Not `trimEnd`, which also takes the non-breaking space.
  while (value[end - 1] === ' ' || value[end - 1] === '\t') end--
  return { name: name.toLowerCase(), value: value.slice(0, end) }
}
