import type { GeneratedOperation } from './generated.ts'

/** `components.headers` of the document. */
export const responseHeaders = {
  'X-Request-Id': {
    description:
      'Unique id of the request. Errors repeat it as `traceId`, unless the request had a `traceparent` header: then `traceId` is its trace id.',
    required: true,
    schema: { type: 'string', pattern: '^req_[0-7][0-9a-hjkmnp-tv-z]{25}$' },
  },
  'WWW-Authenticate': {
    description: 'Expected authentication scheme (RFC 9110 §11.6.1).',
    schema: { type: 'string' },
    example: 'Bearer realm="otpd"',
  },
  'Retry-After': {
    description: 'Seconds to wait before you retry.',
    schema: { type: 'integer', minimum: 0 },
    example: 41,
  },
  'RateLimit-Policy': {
    description:
      'Rate limit that the request counts for: its name, quota `q` and window `w` in seconds. Absent if there is no limit.',
    schema: { type: 'string' },
    example: '"otp-send";q=5;w=60',
  },
  RateLimit: {
    description:
      'State of the rate limit: requests that remain (`r`), and seconds until one more is available (`t`). Absent if there is no limit.',
    schema: { type: 'string' },
    example: '"otp-send";r=3;t=41',
  },
  'Otpd-Hint': {
    description:
      'Advice to the caller: a live send told neither `clientIp` nor `deviceId` while the guard blocks. For people; the text may change.',
    schema: { type: 'string' },
    example:
      "Pass clientIp, your end user's IP address, or deviceId: without them the guard cannot tell customers from attackers.",
  },
  'Idempotency-Replayed': {
    description: '`true` if this is the stored response of an earlier request with the same Idempotency-Key.',
    schema: { type: 'string', enum: ['true'] },
  },
} as const

type HeaderName = keyof typeof responseHeaders

/** Operations of applications with a rate limit; calls of developers and look-ups always have one. */
const ratedOperations = new Set(['sendOtp', 'resendOtp', 'verifyOtp', 'deliverCode'])

/** Returns the names of the headers that the responses of an operation may have, by status. */
export function responseHeaderNames(
  { operationId, parameters = [] }: GeneratedOperation,
  security: ReadonlyArray<Record<string, readonly string[]>>,
): (status: string) => HeaderName[] {
  const isRated =
    ratedOperations.has(operationId) ||
    security.some((scheme) => 'console' in scheme || Object.keys(scheme).join() === 'apiKey')
  const isReplayable = parameters.some(({ name }) => name === 'Idempotency-Key')
  return (status) => [
    'X-Request-Id',
    // Requests are counted once the caller is known, after the size and the media type were checked.
    ...(isRated && !['401', '413', '415'].includes(status)
      ? (['RateLimit-Policy', 'RateLimit'] as const)
      : []),
    ...(isReplayable && (status.startsWith('2') || ['403', '502'].includes(status))
      ? (['Idempotency-Replayed'] as const)
      : []),
    ...(operationId === 'sendOtp' && ['201', '403'].includes(status) ? (['Otpd-Hint'] as const) : []),
    ...(status === '401' || (status === '403' && isScoped(security)) ? (['WWW-Authenticate'] as const) : []),
    // 409 while the first call with the same key is in progress.
    ...(['429', '503'].includes(status) || (isReplayable && status === '409')
      ? (['Retry-After'] as const)
      : []),
  ]
}

/** A token without the scope is refused with a challenge (RFC 6750 §3.1). */
const isScoped = (security: ReadonlyArray<object>) => security.some((scheme) => 'console' in scheme)

export const headerReferences = (names: readonly HeaderName[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
