import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createConversation, page, refusal } from '../harness.ts'

let talk: ReturnType<typeof createConversation>

beforeEach(() => {
  talk = createConversation()
})

afterEach(() => talk.end())

const message = (number: number, over: Record<string, unknown> = {}) => ({
  id: `evt_${String(number).padStart(26, '0')}`,
  requestId: 'otp_01arz3ndektsv4rrffq69g5fav',
  appId: 'app_01arz3ndektsv4rrffq69g5fav',
  phone: '+14155550132',
  code: String(100_000 + number),
  text: 'A code.',
  sentAt: '2026-11-20T11:59:00.000Z',
  expiresAt: '2026-11-20T12:04:00.000Z',
  ...over,
})

const cut = (nextCursor: string, ...data: unknown[]) =>
  Response.json({ data, pagination: { limit: 50, nextCursor } })

/** One answer for each look into the inbox; then the session is over, which ends a tail. */
function serve(...answers: (() => Response)[]) {
  talk.answer = () => answers.shift()?.() ?? refusal(401, 'UNAUTHENTICATED', 'The token has expired.')
}

const codesIn = (stdout: string): unknown[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).code)

describe('inbox --tail', () => {
  test('prints the last messages and then each that comes, oldest first, as lines of JSON', async () => {
    serve(
      () => page(message(2), message(1)),
      () => page(message(2), message(1)),
      () => page(message(4), message(3), message(2), message(1)),
      () => page(message(5), message(4)),
    )
    const ran = await talk.home.otpd(['inbox', '--tail', '--json'])
    expect(codesIn(ran.stdout)).toEqual(['100001', '100002', '100003', '100004', '100005'])
    expect(talk.server.asked[0]?.path).toBe('/v1/inbox?limit=20')
    // What ended it: the token, which nobody can renew.
    expect(ran.exitCode).toBe(4)
  })

  test('prints a line a message, the codes of the past as over', async () => {
    serve(
      () => page(message(1, { code: null, text: null })),
      () => page(message(2), message(1)),
    )
    const ran = await talk.home.otpd(['inbox', '-t'])
    expect(ran.stdout).toMatch(
      /^\S+ +\+14155550132 +over +otp_\w{26}\n\S+ +\+14155550132 +100002 +otp_\w{26}\n$/,
    )
    expect(ran.stderr).toContain('Waiting for codes from')
  })

  test('looks through the pages for what came while nobody looked', async () => {
    serve(
      () => page(message(1)),
      () => cut('older', message(4), message(3)),
      () => page(message(2), message(1), message(0)),
    )
    const ran = await talk.home.otpd(['inbox', '--tail', '--json'])
    expect(codesIn(ran.stdout)).toEqual(['100001', '100002', '100003', '100004'])
    expect(talk.server.asked[2]?.path).toBe('/v1/inbox?cursor=older')
  })

  test('prints nothing again where the newest message has gone', async () => {
    serve(
      () => page(message(2), message(1)),
      () => page(message(1), message(0)),
    )
    const ran = await talk.home.otpd(['inbox', '--tail', '--json'])
    expect(codesIn(ran.stdout)).toEqual(['100001', '100002'])
  })

  test('comes back after a loss, and shows the gap once', async () => {
    const away = () => refusal(503, 'UNAVAILABLE', 'Restarting.')
    serve(
      () => page(),
      away,
      away,
      () => page(message(1)),
    )
    const ran = await talk.home.otpd(['inbox', '--tail'])
    expect(ran.stderr.match(/── the connection was lost, trying again ──/g)).toHaveLength(1)
    expect(ran.stderr).toContain('── back after 2 s, nothing is missing ──')
    expect(ran.stdout).toContain('100001')
  })

  test('begins with the newest and takes no cursor', async () => {
    const ran = await talk.home.otpd(['inbox', '--tail', '--cursor', 'x'])
    expect(ran.exitCode).toBe(2)
    expect(talk.server.asked).toEqual([])
  })
})
