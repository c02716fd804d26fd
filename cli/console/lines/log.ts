import { eventTone, reasonWords, refusedText } from '../../client/log-lines.ts'
import type { LogEntry } from '../../client/resources.ts'
import type { Span } from '../spans.ts'
import type { Theme } from '../theme.ts'

/** Formats the type of an entry: `✓ otp.verified`. */
export const typeSpan = ({ type }: LogEntry, theme: Theme): Span => theme.status(eventTone(type), type)

/** Describes an entry in words: `failed: max attempts`. */
export const eventText = (entry: LogEntry) => refusedText(entry) ?? typeText(entry)

const typeText = ({ type, detail }: LogEntry) =>
  [type.replace(/^otp\./, '').replaceAll(/[._]/g, ' '), detail && reasonWords(detail)]
    .filter(Boolean)
    .join(': ')

/** Returns the request that an entry leads to. An entry about a delivered code names its message instead, and leads to none. */
export const linkedRequest = (entry: Pick<LogEntry, 'requestId'> | null | undefined): string | null =>
  entry?.requestId?.startsWith('msg_') === true ? null : (entry?.requestId ?? null)
