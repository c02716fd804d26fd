import { describe, expect, test } from 'bun:test'
import { createColors } from 'picocolors'
import type { OtpRequest, RequestEvent } from '../../../cli/client/resources.ts'
import { eventText } from '../../../cli/console/lines/log.ts'
import { summaryLines, timelineLines } from '../../../cli/console/lines/timeline.ts'
import { plainText } from '../../../cli/console/spans.ts'
import { localTime } from '../../../cli/terminal/text.ts'
import { createTheme } from '../../../cli/console/theme.ts'

const theme = createTheme(createColors(false), false)
const startMs = Date.parse('2026-11-20T12:00:00.000Z')
const at = (ms: number) => new Date(startMs + ms).toISOString()
const time = (ms: number) => localTime(at(ms)).slice(11)

const event = (type: string, ms: number, fields: Partial<RequestEvent> = {}): RequestEvent => ({
  id: `evt_${ms}`,
  type,
  appId: 'app_1',
  requestId: 'otp_1',
  phone: '+447700900123',
  status: 'pending',
  detail: null,
  at: at(ms),
  ...fields,
})

const request: OtpRequest = {
  id: 'otp_1',
  requestId: 'otp_1',
  appId: 'app_1',
  environment: 'live',
  phone: '+447700900123',
  country: 'GB',
  status: 'pending',
  failureReason: null,
  channel: 'sms',
  provider: 'main',
  deliveryStatus: 'sent',
  attempts: 0,
  maxAttempts: 5,
  resends: 0,
  metadata: null,
  createdAt: at(0),
  expiresAt: at(300_000),
  verifiedAt: null,
  updatedAt: at(0),
}

const sent = event('otp.sent', 0)
const attempt = (fields: Partial<RequestEvent>) =>
  event('delivery.attempted', 40, {
    channel: 'sms',
    provider: 'main',
    latencyMs: 240,
    error: null,
    ...fields,
  })
const accepted = attempt({
  outcome: 'accepted',
  providerMessageId: 'SM1',
  cost: '0.0079',
  costEstimated: true,
})
const refused = attempt({ outcome: 'refused', error: 'unreachable' })
const lost = attempt({ outcome: 'accepted', error: 'unreachable' })

test('a timeline says when each step was, how long after the first, and how it went', () => {
  const wrongCode = event('otp.attempt_failed', 9000, { attempt: 1, attemptsMax: 5, detail: '1/5' })
  const lines = timelineLines([sent, refused, lost, accepted, wrongCode], theme).map((line) =>
    plainText(line)
      .replace(/^ \d\d:\d\d:\d\d +/, '')
      .replaceAll(/ {2,}/g, '  '),
  )
  expect(lines).toEqual([
    '→ code sent',
    '+40 ms  ✗ SMS via main: refused  unreachable  240 ms',
    '+40 ms  ✗ SMS via main: accepted, then not delivered  unreachable  240 ms',
    '+40 ms  ● SMS via main: accepted  240 ms  costs 0.0079 (estimated)  SM1',
    '+9 s  ▲ wrong code 1/5',
  ])
})

test('reasons are words, and rules of the guard have the names of the guide', () => {
  const failed = attempt({ outcome: 'refused', error: 'invalid_number' })
  const blocked = event('otp.blocked', 50, { detail: 'COUNTRY_NOT_ALLOWED' })
  const lines = timelineLines([sent, failed, blocked], theme).map(plainText)
  expect(lines[1]).toContain('invalid number')
  expect(lines[2]).toEndWith('blocked by the guard  COUNTRY_NOT_ALLOWED')
  expect(eventText(blocked)).toBe('blocked: COUNTRY_NOT_ALLOWED')
})

describe('the summary of a request', () => {
  const summary = (changes: Partial<OtpRequest>, ...events: RequestEvent[]) =>
    summaryLines({ ...request, ...changes }, events, { nowMs: startMs + 60_000, width: 200, theme })
      .map(plainText)
      .join('')

  test.each<[string, Partial<OtpRequest>, RequestEvent[], string]>([
    [
      'accepted',
      {},
      [sent, accepted],
      'main accepted the message; no receipt says that it arrived. It was not entered, and expires in 4 min.',
    ],
    [
      'delivered',
      {},
      [sent, accepted, event('otp.delivered', 2000)],
      'The code reached the phone. It was not entered, and expires in 4 min.',
    ],
    ['in the inbox', { provider: 'inbox' }, [sent], 'The code is in the inbox, and was sent to no phone.'],
    [
      'expired',
      { status: 'expired', attempts: 1 },
      [sent, accepted],
      'It was entered wrongly once, and has expired.',
    ],
    [
      'followed by refused sends',
      { status: 'expired' },
      [
        sent,
        accepted,
        event('otp.refused', 60_000, {
          reason: 'PHONE_SEND_BUDGET',
          count: 2,
          since: at(30_000),
          nextAt: at(300_000),
        }),
      ],
      `and has expired. 2 sends refused since ${time(30_000)}, next at ${time(300_000)} (PHONE_SEND_BUDGET).`,
    ],
    ...['CHALLENGE_REQUIRED', 'CHALLENGE_FAILED'].map(
      (reason): [string, Partial<OtpRequest>, RequestEvent[], string] => [
        `followed by a send that was refused with ${reason}`,
        { status: 'expired' },
        [
          sent,
          accepted,
          event('otp.refused', 60_000, { reason, count: 1, since: at(60_000), nextAt: at(60_000) }),
        ],
        `and has expired. 1 send refused (${reason}).`,
      ],
    ),
    ['verified', { status: 'verified', verifiedAt: at(12_000) }, [sent], 'Verified 12 s after it was sent.'],
    [
      'verified at once',
      { status: 'verified', verifiedAt: at(116) },
      [sent],
      'Verified 116 ms after it was sent.',
    ],
    [
      'blocked',
      { status: 'failed', failureReason: 'blocked' },
      [],
      'The guard blocked the message, so nothing was sent.',
    ],
    [
      'not delivered',
      { status: 'failed', failureReason: 'delivery_failed' },
      [sent, refused],
      'The message could not be delivered: unreachable.',
    ],
    [
      'to a number that no network has',
      { status: 'failed', failureReason: 'delivery_failed' },
      [sent, attempt({ outcome: 'refused', error: 'invalid_number' })],
      'The message could not be delivered: invalid number.',
    ],
    [
      'guessed',
      { status: 'failed', failureReason: 'max_attempts', attempts: 5 },
      [sent],
      'A wrong code was entered 5 times.',
    ],
  ])('that is %s answers whether the code arrived', (_, changes, events, expected) => {
    expect(summary(changes, ...events)).toContain(expected)
  })
})
