import type { OtpRequest, RequestEvent } from '../../client/resources.ts'
import { choiceText } from '../../client/choice-text.ts'
import {
  eventTone,
  costText,
  interruptedText,
  outcomeText,
  reasonWords,
  refusedText,
  routeText,
} from '../../client/log-lines.ts'
import { formatDuration, formatTimeUntil, localTime } from '../../terminal/text.ts'
import { wrap, type Line } from '../spans.ts'
import type { Theme, Tone } from '../theme.ts'

/** Formats what happened to a request, oldest first: time, time since the first event, and the event in words. */
export function timelineLines(events: readonly RequestEvent[], theme: Theme): Line[] {
  const { paint } = theme
  const [first] = events
  if (first === undefined) return [{ text: ' Nothing is recorded for this request.', paint: paint.dim }]
  const [firstDay = ''] = localTime(first.at).split(' ')
  return events.map((event): Line => {
    const [day = '', time = ''] = localTime(event.at).split(' ')
    const [text, detail] = eventWords(event)
    return [
      {
        text: ` ${day === firstDay ? time : `${day.slice(5)} ${time.slice(0, 5)}`}`.padEnd(13),
        paint: paint.dim,
      },
      { text: sinceText(Date.parse(event.at) - Date.parse(first.at)).padStart(10), paint: paint.dim },
      '  ',
      theme.status(toneOf(event), text),
      detail === '' ? '' : { text: `  ${detail}`, paint: paint.dim },
    ]
  })
}

const sinceText = (ms: number) => (ms === 0 ? '' : `+${formatDuration(Math.max(0, ms))}`)

const toneOf = (event: RequestEvent): Tone => {
  if (event.type !== 'delivery.attempted') return eventTone(event.type)
  if (event.outcome === 'accepted') return event.error ? 'bad' : 'good'
  return event.outcome === 'uncertain' ? 'warning' : 'bad'
}

const eventTexts: Partial<Record<string, string>> = {
  'otp.sent': 'code sent',
  'otp.delivered': 'delivered to the phone',
  'otp.undelivered': 'not delivered',
  'otp.verified': 'verified',
  'otp.expired': 'expired',
  'otp.canceled': 'canceled',
  'otp.blocked': 'blocked by the guard',
  'otp.failed': 'failed',
  'guard.flagged': 'flagged by the guard',
}

/** Returns an event in words, and its details. */
function eventWords(event: RequestEvent): [text: string, detail: string] {
  const { type, detail } = event
  const refused = refusedText(event)
  if (refused !== undefined) return [refused, '']
  const detailText = reasonWords(detail ?? '')
  if (type === 'delivery.attempted') {
    const details = [
      reasonWords(event.error ?? ''),
      event.latencyMs === undefined ? '' : formatDuration(event.latencyMs),
      costText(event),
      event.providerMessageId ?? '',
      event.interrupted ? interruptedText : '',
      event.providerReply ?? '',
      event.choice ? choiceText(event.choice) : '',
    ]
    return [
      `${routeText(event.channel ?? 'sms', event.provider)}: ${outcomeText(event)}`,
      details.filter(Boolean).join('  '),
    ]
  }
  if (type === 'otp.attempt_failed') {
    const count = event.attempt === undefined ? '' : ` ${event.attempt}/${event.attemptsMax}`
    return [`wrong code${count}`, '']
  }
  return [eventTexts[type] ?? type, detailText]
}

/** Answers the question of a support person in a sentence: did the code arrive, and if not, why. */
export function summaryLines(
  request: OtpRequest,
  events: readonly RequestEvent[],
  { nowMs, width, theme }: { nowMs: number; width: number; theme: Theme },
): Line[] {
  const [tone, summary] = summarize(request, events, nowMs)
  const refused = events.map(refusedText).findLast((text) => text !== undefined)
  const text = refused === undefined ? summary : `${summary} ${refused}.`
  const { paint } = theme.tones[tone]
  return wrap(text, width - 4).map((line, index) =>
    index === 0 ? [' ', theme.status(tone, line)] : { text: `   ${line}`, paint },
  )
}

function summarize(request: OtpRequest, events: readonly RequestEvent[], nowMs: number): [Tone, string] {
  const { status, attempts, createdAt, verifiedAt, expiresAt } = request
  const isDelivered = events.some(({ type }) => type === 'otp.delivered')
  const lastAttempt = events.findLast(({ type }) => type === 'delivery.attempted')
  const reason = lastAttempt?.error ?? null
  const because = reason === null ? '' : `: ${reasonWords(reason)}`
  const tries =
    attempts === 0
      ? 'not entered'
      : attempts === 1
        ? 'entered wrongly once'
        : `entered wrongly ${attempts} times`
  const arrival = isDelivered
    ? 'The code reached the phone'
    : events.some(({ type }) => type === 'otp.undelivered')
      ? `The code did not reach the phone${because}`
      : lastAttempt === undefined
        ? 'The code is in the inbox, and was sent to no phone'
        : lastAttempt.outcome === 'accepted' && reason === null
          ? `${lastAttempt.provider ?? 'The provider'} accepted the message; no receipt says that it arrived`
          : `The message could not be sent${because}`
  switch (status) {
    case 'verified': {
      const tookMs = verifiedAt === null ? null : Date.parse(verifiedAt) - Date.parse(createdAt)
      return ['done', tookMs === null ? 'Verified.' : `Verified ${formatDuration(tookMs)} after it was sent.`]
    }
    case 'pending':
      return ['waiting', `${arrival}. It was ${tries}, and expires ${formatTimeUntil(expiresAt, nowMs)}.`]
    case 'expired':
      return ['off', `${arrival}. It was ${tries}, and has expired.`]
    case 'canceled':
      return ['off', `${arrival}. It was canceled.`]
    case 'failed':
      return ['bad', failureText(request, because)]
  }
}

function failureText({ failureReason, attempts }: OtpRequest, because: string) {
  if (failureReason === 'max_attempts') return `A wrong code was entered ${attempts} times.`
  if (failureReason === 'blocked') return 'The guard blocked the message, so nothing was sent.'
  return `The message could not be delivered${because}.`
}
