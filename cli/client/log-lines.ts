import { choiceText } from './choice-text.ts'
import type { LogEntry } from './resources.ts'
import type { Output } from '../terminal/output.ts'
import { shortenIds } from '../terminal/table.ts'
import { formatDuration, pad, truncate, printable, recentTime, timeZone } from '../terminal/text.ts'

/** State that an event reports: it decides symbol and colour, here and in the console. */
type EventTone = 'sent' | 'good' | 'done' | 'bad' | 'warning' | 'off' | 'neutral'

const toneByType: Partial<Record<string, EventTone>> = {
  'otp.sent': 'sent',
  'otp.delivered': 'good',
  'otp.undelivered': 'bad',
  'otp.verified': 'done',
  'otp.failed': 'bad',
  'otp.expired': 'off',
  'otp.canceled': 'off',
  'otp.blocked': 'bad',
  'message.sent': 'sent',
  'message.delivered': 'good',
  'message.undelivered': 'bad',
  'message.verified': 'done',
  'message.failed': 'bad',
  'otp.attempt_failed': 'warning',
  'otp.refused': 'warning',
  'webhook.disabled': 'warning',
  'guard.flagged': 'warning',
  'guard.alert': 'bad',
}

/** Returns the tone of an event type. */
export const eventTone = (type: string): EventTone => toneByType[type] ?? 'neutral'

const marks = {
  sent: { symbol: '→', paint: 'cyan' },
  good: { symbol: '●', paint: 'green' },
  done: { symbol: '✓', paint: 'green' },
  bad: { symbol: '✗', paint: 'red' },
  warning: { symbol: '▲', paint: 'yellow' },
  off: { symbol: '○', paint: 'dim' },
  neutral: { symbol: '·', paint: 'dim' },
} as const satisfies Record<EventTone, { symbol: string; paint: keyof Output['paint'] }>

/** Formats the type of a log entry, with a symbol and colour. */
export function paintType(type: string, paint: Output['paint']) {
  const { symbol, paint: colour } = marks[eventTone(type)]
  return paint[colour](`${symbol} ${printable(type)}`)
}

const widths = { time: 11, type: 20, phone: 16 }
/** Longer names of applications are truncated on a terminal, where at most a fifth of the width is theirs. */
const appWidthMax = (terminalWidth: number) => Math.max(16, Math.floor(terminalWidth / 5))
/** Narrower terminals have one space between columns. */
const roomyWidth = 70

/** Formats log entries in columns whose widths do not depend on the entries, so that they can be printed one by one. */
export function createLogLines(
  appNames: ReadonlyMap<string, string>,
  { paint, columns }: Pick<Output, 'paint' | 'columns'>,
) {
  const terminalWidth = columns()
  const gap = (terminalWidth ?? Infinity) < roomyWidth ? 1 : 2
  const shownId = (id: string) => (terminalWidth === null ? id : shortenIds(id))
  // A token that may not read names sees ids.
  const names = appNames.size === 0 ? [shownId(`app_${'0'.repeat(26)}`)] : [...appNames.values()]
  const longestName = Math.max('APP'.length, ...names.map((name) => Bun.stringWidth(printable(name))))
  const appWidth = terminalWidth === null ? longestName : Math.min(longestName, appWidthMax(terminalWidth))
  const leadingWidth = widths.time + widths.type + widths.phone + 3 * gap
  const widthLeft = (terminalWidth ?? Infinity) - leadingWidth
  const hasApp = widthLeft >= appWidth + detailWidthMin + gap
  const detailSpace = widthLeft - (hasApp ? appWidth + gap : 0)

  const line = ({ time, type, phone, app, detail, request }: LineCells) => {
    // The detail says what happened, so the request is shortened and then left out before the detail is cut.
    const requests = terminalWidth === null ? [request] : [request, shortenIds(request), '']
    const detailWidth = detail === '' ? 0 : Bun.stringWidth(detail) + gap
    const requestText = requests.find((text) => detailWidth + text.length <= detailSpace) ?? ''
    const cells = [
      pad(paint.dim(time), widths.time),
      pad(type, widths.type),
      pad(phone, widths.phone),
      ...(hasApp ? [pad(truncate(app, appWidth, '…'), appWidth)] : []),
      ...[truncate(detail, Math.max(0, detailSpace), '…'), requestText && paint.dim(requestText)].filter(
        (text) => text !== '',
      ),
    ]
    return truncate(cells.join(' '.repeat(gap)).trimEnd(), terminalWidth ?? Infinity, '…')
  }

  return {
    /** Formats the headings; they name the time zone. */
    heading: (nowMs: number) =>
      paint.dim(
        Bun.stripANSI(
          line({
            time: timeTitle(nowMs),
            type: 'EVENT',
            phone: 'PHONE',
            app: 'APP',
            detail: 'DETAIL, REQUEST',
            request: '',
          }),
        ),
      ),
    /** Formats an entry: local time, type, phone, application, detail, request. */
    entry(entry: LogEntry, nowMs: number) {
      const appName = entry.appId === null ? '' : (appNames.get(entry.appId) ?? shownId(entry.appId))
      return line({
        time: recentTime(entry.at, nowMs),
        type: paintType(entry.type, paint),
        phone: printable(entry.phone ?? '-'),
        app: printable(appName),
        detail: printable(entryDetail(entry)),
        request: entry.requestId ?? '',
      })
    },
  }
}

const detailWidthMin = 8

type LineCells = Record<'time' | 'type' | 'phone' | 'app' | 'detail' | 'request', string>

function timeTitle(nowMs: number) {
  const zone = timeZone(nowMs)
  const title = `TIME (${zone})`
  return title.length > widths.time ? zone : title
}

/** Formats what an entry says beyond its type: which wrong code it was, or how a message was delivered. */
export const entryDetail = (entry: LogEntry): string =>
  entry.type === 'delivery.attempted' ? attemptText(entry) : (refusedText(entry) ?? entry.detail ?? '')

/** Formats refused sends: `2 sends refused since 11:40:05, next at 11:45:12 (PHONE_SEND_BUDGET)`; undefined for other entries. */
export function refusedText({ at, reason, count, since, nextAt }: LogEntry): string | undefined {
  if (count === undefined || since === undefined || nextAt === undefined) return undefined
  const time = (iso: string) => recentTime(iso, Date.parse(at))
  const sends = count === 1 ? '1 send refused' : `${count} sends refused since ${time(since)}`
  // After a challenge it may come again at once.
  const needsChallenge = reason === 'CHALLENGE_REQUIRED' || reason === 'CHALLENGE_FAILED'
  return `${sends}${needsChallenge ? '' : `, next at ${time(nextAt)}`} (${reason ?? ''})`
}

const outcomes = {
  accepted: 'accepted',
  refused: 'refused',
  uncertain: 'no clear response',
} as const

/** Says how a provider took a message, and whether it reported later that the message did not arrive. */
export function outcomeText({ outcome = 'uncertain', error }: Pick<LogEntry, 'outcome' | 'error'>) {
  const isLost = outcome !== 'refused' && error && error !== 'uncertain'
  return `${outcomes[outcome]}${isLost ? ', then not delivered' : ''}`
}

/** Says of an attempt why the code may arrive twice. */
export const interruptedText = 'again, as the server was killed during the attempt before'

/** Formats what a message cost: `costs 0.0079 (estimated)`; empty if that is unknown. */
export const costText = ({ cost, costEstimated }: Pick<LogEntry, 'cost' | 'costEstimated'>) =>
  cost ? `costs ${cost}${costEstimated ? ' (estimated)' : ''}` : ''

/** Writes a reason in words: `invalid number`. Rules of the guard keep their names, by which the guide and the log list them. */
export const reasonWords = (reason: string) => (/[a-z]/.test(reason) ? reason.replaceAll('_', ' ') : reason)

/** Formats an attempt to deliver a message: `SMS via main: refused (recipient rejected) in 120 ms`. */
function attemptText(entry: LogEntry) {
  const { channel = 'sms', provider, error, providerReply, latencyMs } = entry
  const said = providerReply ? `: ${providerReply}` : ''
  const reason = error ? ` (${reasonWords(error)}${said})` : ''
  const duration = latencyMs === undefined ? '' : ` in ${formatDuration(latencyMs)}`
  const cost = costText(entry)
  const again = entry.interrupted ? `, ${interruptedText}` : ''
  const chosen = entry.choice ? `, ${choiceText(entry.choice)}` : ''
  return `${routeText(channel, provider)}: ${outcomeText(entry)}${reason}${duration}${cost && `, ${cost}`}${again}${chosen}`
}

const channelNames: Partial<Record<string, string>> = {
  sms: 'SMS',
  whatsapp: 'WhatsApp',
  telegram: 'Telegram',
  rcs: 'RCS',
  voice: 'voice call',
  silent: 'a proof',
}

/** Formats a channel for people. */
export const channelName = (channel: string) => channelNames[channel] ?? channel

/** Formats a channel and its provider, if there is one: `SMS via main`. */
export const routeText = (channel: string, provider: string | null | undefined) =>
  provider == null ? channelName(channel) : `${channelName(channel)} via ${printable(provider)}`
