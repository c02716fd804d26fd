import type { LogType } from '../../shared/event-kinds.ts'
import { attemptsMax } from './code.ts'
import type { DeliveryTry, FailureClass } from './delivery.ts'
import type { RefusedSends } from './refused-sends.ts'
import type { ChoiceReason, ConsideredProvider, LearningStrategy, RouteChoice } from './route-choice.ts'
import type { Channel, OtpRequest, OtpStatus } from './request.ts'

// The history of a request is a text in its own row, to which each change of the request appends: the row is written
// anyway, and no index leads from a request to its log entries. It also outlives the log, which is kept for less time.

/** Place of a log entry: its number, or on PostgreSQL a number that is a little lower, and its time. */
export type EntryPlace = { seq: number; isExact: boolean; at: number }

/** `line` counts the lines of a history from 0, and never changes. */
export type HistoryEntry = { line: number } & (
  | {
      type: LoggedType
      status: OtpStatus
      detail: string | null
      at: number
      place: EntryPlace
      /** Number of this wrong code, from 1; undefined for other types. */
      attempt: number | undefined
    }
  | ({ type: 'delivery.attempted' } & DeliveryTry)
  | ({ type: 'otp.refused' } & LoggedRefusals)
)

/**
 * Refused sends that follow a message of the request: `at` is the time of the last, `loggedAt` that of their last log
 * entry.
 */
export type LoggedRefusals = RefusedSends & { at: number; loggedAt: number }

type LoggedType = Exclude<LogType, 'otp.refused'>

/** Codes of types and statuses. They are stored. */
const typeCodes: Readonly<Partial<Record<LoggedType, string>>> = {
  'otp.sent': 's',
  'otp.delivered': 'd',
  'otp.undelivered': 'u',
  'otp.verified': 'v',
  'otp.failed': 'f',
  'otp.expired': 'e',
  'otp.canceled': 'c',
  'otp.blocked': 'b',
  'otp.attempt_failed': 'w',
  'guard.flagged': 'g',
  'session.verified': 'y',
}
const statusCodes = { pending: 'p', verified: 'v', failed: 'f', expired: 'e', canceled: 'c' } as const
const outcomeCodes = { accepted: 'a', refused: 'r', uncertain: 'u' } as const
const tryCode = 't'
const refusedCode = 'x'
/** Follows the outcome of an attempt. */
const interruptedCode = 'i'

const invert = <V extends string>(codes: Readonly<Partial<Record<V, string>>>) =>
  // Each code is the value of one key.
  new Map(Object.entries(codes).map(([value, code]) => [code as string, value as V]))

const types = invert(typeCodes)
const statuses = invert<OtpStatus>(statusCodes)
const outcomes = invert<DeliveryTry['outcome']>(outcomeCodes)

/** Placeholder of a number that only the database knows, which replaces it when it writes the row. */
export const unknownPlace = '?'

/** Escapes what separates entries and fields, and `unknownPlace`. */
const escape = (text: string) => encodeURIComponent(text)

/**
 * Writes a log entry of a request as a line of its history.
 *
 * @param seq undefined if only the database knows it
 */
export function formatEntry(
  { createdAt }: Pick<OtpRequest, 'createdAt'>,
  entry: { type: LogType; status: string | null; detail: string | null; at: number },
  seq: number | undefined,
): string {
  const { type, status, detail, at } = entry
  const codes: Readonly<Partial<Record<LogType, string>>> = typeCodes
  const code = `${codes[type] ?? ''}${statusCodes[(status ?? 'pending') as OtpStatus]}`
  const place = seq === undefined ? `~${unknownPlace}` : seq
  return `${code},${at - createdAt},${place},${detail === null ? '' : escape(detail)}\n`
}

/** Writes a delivery attempt as a line of the history of its request. */
export function formatTry({ createdAt }: Pick<OtpRequest, 'createdAt'>, one: DeliveryTry): string {
  const { at, channel, provider, outcome, error, latencyMs, messageId, reply } = one
  const fields = [at - createdAt, latencyMs, channel, escape(provider), error ?? '', escape(messageId ?? '')]
  if (reply !== null || one.choice) fields.push(escape(reply ?? ''))
  if (one.choice) fields.push(escape(formatChoice(one.choice)))
  const code = `${tryCode}${outcomeCodes[outcome]}${one.isInterrupted ? interruptedCode : ''}`
  return `${code},${fields.join(',')}\n`
}

/**
 * Writes refused sends into the history of the request that they follow: over those since its last message, so that a
 * history does not grow with refusals.
 */
export function withRefusals(request: Pick<OtpRequest, 'history' | 'createdAt'>, sends: LoggedRefusals) {
  const { reason, count, since, nextAt, at, loggedAt } = sends
  const times = [since, at, loggedAt, nextAt].map((time) => time - request.createdAt)
  const text = [refusedCode, count, ...times, reason].join(',')
  const earlier = findRefusals(request)
  if (!earlier) return `${request.history}${text}\n`
  const lines = request.history.split('\n')
  return lines.with(earlier.line, text).join('\n')
}

/** Finds the sends that were refused since the last message of a request. */
export function findRefusals(request: Pick<OtpRequest, 'history' | 'createdAt'>) {
  const entries = parseHistory(request)
  const lastSent = Math.max(-1, ...entries.map(({ type, line }) => (type === 'otp.sent' ? line : -1)))
  return entries.flatMap((entry) => (entry.type === 'otp.refused' && entry.line > lastSent ? [entry] : []))[0]
}

/** Reads the history of a request, oldest first. */
export function parseHistory({
  history,
  createdAt,
}: Pick<OtpRequest, 'history' | 'createdAt'>): HistoryEntry[] {
  let wrongCodes = 0
  const entries = history.split('\n').flatMap((text, line): HistoryEntry[] => {
    const [codes = '', ...fields] = text.split(',')
    const [first = '', second = '', third] = codes
    if (first === tryCode)
      return parseTry(
        line,
        { outcomeCode: second, isInterrupted: third === interruptedCode },
        fields,
        createdAt,
      )
    if (first === refusedCode) return [parseRefusals(line, fields, createdAt)]
    const type = types.get(first)
    const status = statuses.get(second)
    if (type === undefined || status === undefined) return []
    const [delta, place = '', ...rest] = fields
    const detail = rest.join(',')
    const at = createdAt + Number(delta)
    return [
      {
        line,
        type,
        status,
        detail: detail === '' ? null : decodeURIComponent(detail),
        at,
        place: { seq: Number(place.replace('~', '')), isExact: !place.startsWith('~'), at },
        attempt: type === 'otp.attempt_failed' ? ++wrongCodes : undefined,
      },
    ]
  })
  // An attempt is appended at its end. Sorting is stable: of the same time, what was appended first is first.
  return entries.toSorted((a, b) => a.at - b.at)
}

function parseRefusals(line: number, fields: string[], createdAt: number): HistoryEntry {
  const [count = 1, since = 0, at = 0, loggedAt = 0, nextAt = 0] = fields.map(Number)
  return {
    line,
    type: 'otp.refused',
    reason: fields.at(-1) ?? '',
    count,
    since: createdAt + since,
    at: createdAt + at,
    loggedAt: createdAt + loggedAt,
    nextAt: createdAt + nextAt,
  }
}

function parseTry(
  line: number,
  { outcomeCode, isInterrupted }: { outcomeCode: string; isInterrupted: boolean },
  fields: string[],
  createdAt: number,
): HistoryEntry[] {
  const [delta, latencyMs, channelName, provider = '', error = '', messageId = '', reply = '', choiceText] =
    fields
  // Written by `formatTry`.
  const channel = channelName as Channel
  const choice = choiceText === undefined ? undefined : parseChoice(channel, decodeURIComponent(choiceText))
  const outcome = outcomes.get(outcomeCode)
  if (outcome === undefined) return []
  return [
    {
      line,
      type: 'delivery.attempted',
      at: createdAt + Number(delta),
      channel,
      provider: decodeURIComponent(provider),
      messageId: messageId === '' ? null : decodeURIComponent(messageId),
      outcome,
      error: error === '' ? null : (error as FailureClass),
      reply: reply === '' ? null : decodeURIComponent(reply),
      latencyMs: Number(latencyMs),
      ...(isInterrupted && { isInterrupted }),
      ...(choice && { choice }),
    },
  ]
}

/** Writes the decision of a strategy: `cost best cheap:5000:600:41 good:9000:850:500`, the conversion in thousandths. */
const formatChoice = ({ strategy, reason, considered }: RouteChoice) =>
  [strategy, reason, ...considered.map(formatConsidered)].join(' ')

const formatConsidered = ({ provider, price, conversion, samples }: ConsideredProvider) =>
  [provider, price ?? '', Math.round(conversion * 1000), Math.round(samples)].join(':')

function parseChoice(channel: Channel, text: string): RouteChoice {
  const [strategy, reason, ...providers] = text.split(' ')
  return {
    channel,
    // Both were written by `formatChoice`.
    strategy: strategy as LearningStrategy,
    reason: reason as ChoiceReason,
    considered: providers.map((fields) => {
      const [provider = '', price = '', conversion, samples] = fields.split(':')
      return {
        provider,
        price: price === '' ? null : Number(price),
        conversion: Number(conversion) / 1000,
        samples: Number(samples),
      }
    }),
  }
}

/** Removes the providers' ids of messages, which lead to a phone number, and what providers said. */
export const withoutMessageIds = (history: string): string =>
  history.replaceAll(new RegExp(`^(${tryCode}(?:[^,\n]*,){6})[^\n]+$`, 'gm'), '$1')

/** Detail of the log entry of a wrong code, such as `1/5`. */
export const formatAttempt = (attempt: number) => `${attempt}/${attemptsMax}`

/** Reads the attempt of a wrong code; undefined if the entry is older than the field. */
export function parseAttempt(type: string, detail: string | null): number | undefined {
  if (type !== 'otp.attempt_failed' || detail === null) return undefined
  return Number.parseInt(detail)
}
