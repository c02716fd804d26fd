import type { createColors } from 'picocolors'
import { dayMs, hourMs, minuteMs, secondMs } from '../../src/shared/durations.ts'

export type Paint = ReturnType<typeof createColors>

/**
 * Replaces control characters in text from elsewhere (a project's name, a server's message): they could move the
 * cursor, recolour the screen or forge a line of ours.
 */
export const printable = (text: string) =>
  text.replaceAll(/\p{Cc}|\p{Cf}/gu, (character) => (character === '\u200d' ? character : '�'))

/**
 * Escapes what a terminal would obey or hide in JSON from elsewhere: C1 controls, line and paragraph separators, and
 * characters that turn or join text around them. JSON itself escapes C0 controls, and the values stay the same.
 */
export const terminalJson = (json: string) =>
  json.replaceAll(/[\u007f-\u009f\p{Zl}\p{Zp}\p{Cf}]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => escapeUnit(character.charCodeAt(index))).join(''),
  )

const escapeUnit = (unit: number) => `\\u${unit.toString(16).padStart(4, '0')}`

/**
 * Formats columns under headings, two spaces apart, each as wide as its widest cell. Cells may be coloured. With a
 * `width`, the widest columns are truncated; the first id column never, because ids are there to be copied.
 */
export function formatTable(headings: string[], rows: string[][], paint: Paint, width: number | null = null) {
  const lines = [headings.map((heading) => paint.dim(heading)), ...rows]
  const widths = headings.map((_, column) =>
    Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ''))),
  )
  const isId = headings.map((_, column) => rows.some((row) => idPattern.test(row[column] ?? '')))
  if (width !== null) shrinkColumns(widths, isId, width - 2 * (headings.length - 1))
  return lines
    .map((line) => line.map((cell, column) => fitCell(cell, widths[column] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n')
}

const idPattern = /[a-z]{2,4}_[0-9a-z]{26}/

/** Width at which truncated text can still be told apart. */
const readableWidth = 12
/** A narrower column would say nothing. */
const columnWidthMin = 4

/**
 * Shrinks columns in place until they fit: first the widest text columns down to a readable width, one character at a
 * time; then ids except the first, which identifies the row; then text columns to their minimum.
 */
function shrinkColumns(widths: number[], isId: boolean[], availableWidth: number) {
  const excessWidth = () => widths.reduce((sum, width) => sum + width, 0) - availableWidth
  const shrinkTextColumns = (widthMin: number) => {
    for (let columnsOver = excessWidth(); columnsOver > 0; columnsOver--) {
      const textWidths = widths.map((width, column) => (isId[column] ? 0 : width))
      const widest = Math.max(...textWidths)
      if (widest <= widthMin) return
      widths[textWidths.indexOf(widest)] = widest - 1
    }
  }
  shrinkTextColumns(readableWidth)
  const firstId = isId.indexOf(true)
  for (let column = widths.length - 1; column > firstId; column--) {
    const width = widths[column] ?? 0
    if (isId[column])
      widths[column] = Math.max(Math.min(width, readableWidth), width - Math.max(0, excessWidth()))
  }
  shrinkTextColumns(columnWidthMin)
}

const fitCell = (cell: string, width: number) => pad(truncate(cell, width, '…'), width)

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

/** Formats one fact per line with aligned values; leaves out pairs whose value is null or undefined. */
export function formatFacts(
  pairs: [label: string, value: string | null | undefined][],
  paint: Paint,
  indent = '  ',
) {
  const presentPairs = pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  const width = Math.max(0, ...presentPairs.map(([label]) => Bun.stringWidth(label)))
  return presentPairs.map(([label, value]) => `${indent}${paint.dim(pad(label, width))}  ${value}`).join('\n')
}

const pad = (text: string, width: number) => text + ' '.repeat(Math.max(0, width - Bun.stringWidth(text)))

/** Formats a time as `2026-11-20 23:24:01` in the local time zone. */
export function localTime(iso: string) {
  const date = new Date(iso)
  const twoDigits = (value: number) => String(value).padStart(2, '0')
  const day = `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`
  return `${day} ${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}:${twoDigits(date.getSeconds())}`
}

/** Formats only the time if it is today, otherwise `11-20 23:24`. */
export function recentTime(iso: string, nowMs: number) {
  const [day = '', time = ''] = localTime(iso).split(' ')
  return localTime(new Date(nowMs).toISOString()).startsWith(day)
    ? time
    : `${day.slice(5)} ${time.slice(0, 5)}`
}

/** Formats a duration in its two largest useful units: `4 min 41 s`, `2 h`; `now` if it is zero or negative. */
export function formatRemaining(durationMs: number) {
  const seconds = Math.round(durationMs / 1000)
  if (seconds <= 0) return 'now'
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Formats how long something took or may take: `88 ms`, `2 s`, `4 min 41 s`. */
export const formatDuration = (durationMs: number) =>
  durationMs < 1000 ? `${Math.round(durationMs)} ms` : formatRemaining(durationMs)

/** Formats the time left until a moment: `in 40 s`, and `now` once it has passed. */
export function formatTimeUntil(iso: string, nowMs: number) {
  const timeLeft = formatRemaining(Date.parse(iso) - nowMs)
  return timeLeft === 'now' ? timeLeft : `in ${timeLeft}`
}

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

/** Quotes text for a shell, if it needs quotes. */
export const shellWord = (text: string) =>
  /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
