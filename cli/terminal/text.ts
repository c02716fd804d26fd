import type { createColors } from 'picocolors'
import { dayMs, hourMs, minuteMs, secondMs } from '../../src/shared/durations.ts'
import { formatRemaining, localTime, printable } from '../../src/shared/human-text.ts'

export {
  formatBytes,
  formatRemaining,
  formatTimeUntil,
  localTime,
  printable,
  recentTime,
} from '../../src/shared/human-text.ts'

export type Paint = ReturnType<typeof createColors>

/** Writes the name of a resource and its id; the id alone if the name is not known. */
export const namedId = (id: string, name: string | undefined) =>
  name === undefined ? id : `${printable(name)} (${id})`

/**
 * Escapes what a terminal would obey or hide in JSON from elsewhere: C1 controls, line and paragraph separators, and
 * characters that turn or join text around them. JSON itself escapes C0 controls, and the values stay the same.
 */
export const terminalJson = (json: string) =>
  json.replaceAll(/[\u007f-\u009f\p{Zl}\p{Zp}\p{Cf}]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => escapeUnit(character.charCodeAt(index))).join(''),
  )

/**
 * Replaces what a terminal would obey or hide, also in text of ours with values from elsewhere. Only colours, which our own
 * text has, line ends and tabs are kept.
 */
export const terminalText = (text: string) =>
  text.replaceAll(
    // oxlint-disable-next-line no-control-regex -- colours begin with one
    /\u001b\[[\d;]*m|[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}\p{Cf}]/gu,
    (found) => (found.startsWith('\u001b[') || found === '\u200d' ? found : '�'),
  )

const escapeUnit = (unit: number) => `\\u${unit.toString(16).padStart(4, '0')}`

/**
 * Truncates text, which may be coloured, to `width` columns; ends with `ellipsis` if anything was cut. `sliceAnsi`
 * counts a wide character by its first column, so shorter slices are tried until the text fits.
 */
export function truncate(text: string, width: number, ellipsis = '') {
  if (Bun.stringWidth(text) <= width) return text
  for (let length = width; length > 0; length--) {
    const truncated = Bun.sliceAnsi(text, 0, length, ellipsis)
    if (Bun.stringWidth(truncated) <= width) return truncated
  }
  return ''
}

/** A label and its value; null or undefined if there is none. */
export type Fact = [label: string, value: string | null | undefined]

/** Formats one fact per line with aligned values; leaves out facts without a value. */
export function formatFacts(facts: Fact[], paint: Paint, indent = '  ') {
  const presentPairs = facts.filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  const width = Math.max(0, ...presentPairs.map(([label]) => Bun.stringWidth(label)))
  return presentPairs.map(([label, value]) => `${indent}${paint.dim(pad(label, width))}  ${value}`).join('\n')
}

/** Pads text, which may be coloured, with spaces. */
export const pad = (text: string, width: number) =>
  text + ' '.repeat(Math.max(0, width - Bun.stringWidth(text)))

/** Wraps at spaces; a wider word gets a line of its own. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const lastLine = lines.at(-1)
    if (lastLine === undefined || Bun.stringWidth(`${lastLine} ${word}`) > width) lines.push(word)
    else lines[lines.length - 1] = `${lastLine} ${word}`
  }
  return lines
}

/** Formats a time with its time zone: `2026-11-20 23:24:01 CET`. */
export const zonedTime = (iso: string) => `${localTime(iso)} ${timeZone(Date.parse(iso))}`

/** Names the local time zone at a moment: `UTC`, `CET`, `GMT+5:30`. */
export function timeZone(nowMs: number) {
  const parts = new Intl.DateTimeFormat('en-US', { timeZoneName: 'short' }).formatToParts(nowMs)
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'UTC'
}

/** Formats a number with commas between thousands. */
export const formatNumber = (value: number) => value.toLocaleString('en-US')

/** Formats how long something took or may take: `88 ms`, `2 s`, `4 min 41 s`. */
export const formatDuration = (durationMs: number) =>
  durationMs < 1000 ? `${Math.round(durationMs)} ms` : formatRemaining(durationMs)

/** Formats a time relative to now: `just now`, `5 min ago`, `in 2 h`; after 30 days the date. */
export function relativeTime(iso: string, nowMs: number) {
  const ageMs = nowMs - Date.parse(iso)
  const seconds = Math.floor(ageMs / secondMs)
  if (seconds < -10) return `in ${formatRemaining(-seconds * secondMs)}`
  if (seconds < 10) return 'just now'
  if (seconds < 60) return `${seconds} s ago`
  if (ageMs < hourMs) return `${Math.floor(ageMs / minuteMs)} min ago`
  if (ageMs < dayMs) return `${Math.floor(ageMs / hourMs)} h ago`
  const days = Math.floor(ageMs / dayMs)
  if (days > 30) return localTime(iso).slice(0, 10)
  return days === 1 ? 'yesterday' : `${days} days ago`
}

/** Shortens a path below the home directory to `~/…`. */
export function shortPath(path: string, homeDirectory: string) {
  return path.startsWith(`${homeDirectory}/`) ? `~${path.slice(homeDirectory.length)}` : path
}

/** Lists the first three names, and counts the others. */
export function listShort(names: readonly string[]): string {
  const others = names.length - 3
  return others > 0 ? `${names.slice(0, 3).join(', ')} and ${others} more` : names.join(', ')
}
