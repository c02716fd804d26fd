import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCliFixture, pageResponse, errorResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

const message = (number: number, overrides: Record<string, unknown> = {}) => ({
  id: `evt_${String(number).padStart(26, '0')}`,
  requestId: 'otp_01arz3ndektsv4rrffq69g5fav',
  appId: 'app_01arz3ndektsv4rrffq69g5fav',
  phone: '+14155550132',
  code: String(100_000 + number),
  text: 'A code.',
  sentAt: '2026-11-20T11:59:00.000Z',
  expiresAt: '2026-11-20T12:04:00.000Z',
  ...overrides,
})

const pageWithCursor = (nextCursor: string, ...data: unknown[]) =>
  Response.json({ data, pagination: { limit: 50, nextCursor } })

/** Serves one response for each poll of the inbox. Then the session has ended, which ends a tail. */
function respondInTurn(...responders: (() => Response)[]) {
  cli.respond = () =>
    responders.shift()?.() ?? errorResponse(401, 'UNAUTHENTICATED', 'The token has expired.')
}

const parseCodes = (stdout: string): unknown[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).code)

describe('inbox --tail', () => {
  test('prints the last messages and then each new one, oldest first, as lines of JSON', async () => {
    respondInTurn(
      () => pageResponse(message(2), message(1)),
      () => pageResponse(message(2), message(1)),
      () => pageResponse(message(4), message(3), message(2), message(1)),
      () => pageResponse(message(5), message(4)),
    )
    const result = await cli.home.otpd(['inbox', '--tail', '--json'])
    expect(parseCodes(result.stdout)).toEqual(['100001', '100002', '100003', '100004', '100005'])
    expect(cli.server.requests[0]?.path).toBe('/v1/inbox?limit=20')
    // Ended by the token, which cannot be renewed.
    expect(result.exitCode).toBe(4)
  })

  test('prints one line per message, with past codes as used/expired', async () => {
    respondInTurn(
      () => pageResponse(message(1, { code: null, text: null })),
      () => pageResponse(message(2), message(1)),
    )
    const result = await cli.home.otpd(['inbox', '-t'])
    expect(result.stdout).toMatch(
      /^PHONE +CODE +SENT.*\n\+14155550132 +used\/expired +\S+ +otp_\w{26}\n\+14155550132 +100002 +\S+ +otp_\w{26}\n$/,
    )
    expect(result.stderr).toContain('Waiting for codes from')
  })

  test('finds messages of several pages that arrived between two polls', async () => {
    respondInTurn(
      () => pageResponse(message(1)),
      () => pageWithCursor('older', message(4), message(3)),
      () => pageResponse(message(2), message(1), message(0)),
    )
    const result = await cli.home.otpd(['inbox', '--tail', '--json'])
    expect(parseCodes(result.stdout)).toEqual(['100001', '100002', '100003', '100004'])
    expect(cli.server.requests[2]?.path).toBe('/v1/inbox?cursor=older')
  })

  test('prints nothing twice when the newest message was removed', async () => {
    respondInTurn(
      () => pageResponse(message(2), message(1)),
      () => pageResponse(message(1), message(0)),
    )
    const result = await cli.home.otpd(['inbox', '--tail', '--json'])
    expect(parseCodes(result.stdout)).toEqual(['100001', '100002'])
  })

  test('resumes after a lost connection, and shows the gap once', async () => {
    const unavailable = () => errorResponse(503, 'UNAVAILABLE', 'Restarting.')
    respondInTurn(
      () => pageResponse(),
      unavailable,
      unavailable,
      () => pageResponse(message(1)),
    )
    const result = await cli.home.otpd(['inbox', '--tail'])
    expect(result.stderr.match(/── the connection was lost, retrying ──/g)).toHaveLength(1)
    expect(result.stderr).toContain('── reconnected after 2 s, no messages missed ──')
    expect(result.stdout).toContain('100001')
  })

  test('starts at the newest messages and rejects --cursor', async () => {
    const result = await cli.home.otpd(['inbox', '--tail', '--cursor', 'x'])
    expect(result.exitCode).toBe(2)
    expect(cli.server.requests).toEqual([])
  })
})
