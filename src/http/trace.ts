/** W3C Trace Context of a caller: the header as it was sent, and its trace id. */
type TraceContext = { traceparent: string; traceId: string }

/** Version, trace id, parent id, flags; versions above 00 may append more. */
const pattern =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]*)?$/

/** Longest header that is passed on. */
const lengthMax = 128

/** Reads the `traceparent` header (W3C Trace Context §3.2). @returns undefined if it is missing or invalid */
export function readTrace(request: Request): TraceContext | undefined {
  const traceparent = request.headers.get('traceparent')
  if (traceparent === null || traceparent.length > lengthMax) return undefined
  const [, version, traceId, rest] = pattern.exec(traceparent) ?? []
  if (traceId === undefined || (version === '00' && rest !== undefined)) return undefined
  return { traceparent, traceId }
}

/**
 * Returns the id under which a request is found in logs, errors and the audit trail: the caller's trace id, or else our
 * own `X-Request-Id`.
 */
export const readTraceId = (request: Request, headers: Record<string, unknown>): string =>
  readTrace(request)?.traceId ?? String(headers['x-request-id'])
