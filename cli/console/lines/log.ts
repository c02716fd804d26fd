import { refusedText } from '../../client/log-lines.ts'
import type { LogEntry } from '../../client/resources.ts'
import type { Span } from '../spans.ts'
import type { Theme, Tone } from '../theme.ts'

const toneByType: Partial<Record<string, Tone>> = {
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
export const eventTone = (type: string): Tone => toneByType[type] ?? 'neutral'

/** Formats the type of an entry: `✓ otp.verified`. */
export const typeSpan = ({ type }: LogEntry, theme: Theme): Span => theme.status(eventTone(type), type)

/** Describes an entry in words: `failed: max attempts`. */
export const eventText = (entry: LogEntry) => refusedText(entry) ?? typeText(entry)

const typeText = ({ type, detail }: LogEntry) =>
  [type.replace(/^otp\./, '').replaceAll(/[._]/g, ' '), detail?.replaceAll('_', ' ')]
    .filter(Boolean)
    .join(': ')

/** Returns the request that an entry leads to. An entry about a delivered code names its message instead, and leads to none. */
export const linkedRequest = (entry: Pick<LogEntry, 'requestId'> | null | undefined): string | null =>
  entry?.requestId?.startsWith('msg_') === true ? null : (entry?.requestId ?? null)
