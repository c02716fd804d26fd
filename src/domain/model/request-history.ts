import type { LogType } from '../../shared/event-kinds.ts'
import { attemptsMax } from './code.ts'
import { parseTry, tryCode } from './try-lines.ts'
import type { DeliveryTry } from './delivery.ts'
import type { RefusedSends } from './refused-sends.ts'
import type { OtpRequest, OtpStatus } from './request.ts'

// The history of a request is a text in its own row, to which each change of the request appends: the row is written
// anyway, and no index leads from a request to its log entries. It also outlives the log, which is kept for less time.

/** Position of a log entry: its number, or on PostgreSQL one a little lower, and its time. */
export type LogPosition = { seq: number; isExact: boolean; at: number }

/** `line` counts the lines of a history from 0, and never changes. */
type HistoryEntry = { line: number } & (
  | {
      type: LoggedType
      status: OtpStatus
      detail: string | null
      at: number
      position: LogPosition
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
const refusedCode = 'x'

const invert = <V extends string>(codes: Readonly<Partial<Record<V, string>>>) =>
  // Each code is the value of one key.
  new Map(Object.entries(codes).map(([value, code]) => [code as string, value as V]))

const types = invert(typeCodes)
const statuses = invert<OtpStatus>(statusCodes)

/**
 * First line of the history of a request with a known sender: its phone was verified before, or other phones were, from a
 * network or device with few unverified messages.
 */
export const knownSenderLine = 'k\n'

export const isOfKnownSender = ({ history }: Pick<OtpRequest, 'history'>): boolean =>
  history.startsWith(knownSenderLine)

/** Placeholder of a number that only the database knows, which replaces it when it writes the row. */
export const unknownSeq = '?'

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
  const position = seq === undefined ? `~${unknownSeq}` : seq
  return `${code},${at - createdAt},${position},${detail === null ? '' : encodeURIComponent(detail)}\n`
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
    const [first = '', second = ''] = codes
    if (first === tryCode) {
      const tried = parseTry(text, createdAt)
      return tried ? [{ line, type: 'delivery.attempted', ...tried }] : []
    }
    if (first === refusedCode) return [parseRefusals(line, fields, createdAt)]
    const type = types.get(first)
    const status = statuses.get(second)
    if (type === undefined || status === undefined) return []
    const [delta, position = '', ...rest] = fields
    const detail = rest.join(',')
    const at = createdAt + Number(delta)
    return [
      {
        line,
        type,
        status,
        detail: detail === '' ? null : decodeURIComponent(detail),
        at,
        position: { seq: Number(position.replace('~', '')), isExact: !position.startsWith('~'), at },
        attempt: type === 'otp.attempt_failed' ? ++wrongCodes : undefined,
      },
    ]
  })
  // A try is appended at its end. Sorting is stable: of the same time, what was appended first is first.
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

/** Detail of the log entry of a wrong code, such as `1/5`. */
export const formatAttempt = (attempt: number) => `${attempt}/${attemptsMax}`

/** Reads the attempt of a wrong code; undefined if the entry is older than the field. */
export function parseAttempt(type: string, detail: string | null): number | undefined {
  if (type !== 'otp.attempt_failed' || detail === null) return undefined
  return Number.parseInt(detail)
}
