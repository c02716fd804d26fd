import type { createColors } from 'picocolors'

export type Paint = ReturnType<typeof createColors>

/**
 * Text from elsewhere (a project's name, a server's message) without control characters, which could move the
 * cursor, recolour the screen or forge a line of ours.
 */
export const printable = (text: string) =>
  text.replaceAll(/\p{Cc}|\p{Cf}/gu, (character) => (character === '\u200d' ? character : '�'))

/**
 * Columns under headings, two spaces apart, as wide as their widest cell. Cells may be coloured. Where there is a
 * `width` to keep to, the widest columns give way; that of the first id, which is there to be copied, never.
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

/** Words can still be told apart. */
const readableWidth = 12
/** A column says nothing any more where it is narrower still. */
const columnWidthMin = 4

/**
 * Makes the columns fit: first the widest of words, one column of the screen at a time, while they can be read; then ids
 * but the first, which is what the row is of; then words again.
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
 * The text in at most so many columns, with `more` at its end where something is left out. It may be coloured.
 * `sliceAnsi` takes a wide character whose second half no longer fits, so it is asked for less until it does.
 */
export function truncate(text: string, width: number, ellipsis = '') {
  if (Bun.stringWidth(text) <= width) return text
  for (let length = width; length > 0; length--) {
    const truncated = Bun.sliceAnsi(text, 0, length, ellipsis)
    if (Bun.stringWidth(truncated) <= width) return truncated
  }
  return ''
}

/** One fact a line, the values aligned; lines whose value is null or undefined are left out. */
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

/** `2026-11-20 23:24:01` in the reader's own time zone. */
export function localTime(iso: string) {
  const date = new Date(iso)
  const twoDigits = (value: number) => String(value).padStart(2, '0')
  const day = `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`
  return `${day} ${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}:${twoDigits(date.getSeconds())}`
}

/** The time alone for what happened today, else the day too. */
export function recentTime(iso: string, nowMs: number) {
  const [day = '', time = ''] = localTime(iso).split(' ')
  return localTime(new Date(nowMs).toISOString()).startsWith(day)
    ? time
    : `${day.slice(5)} ${time.slice(0, 5)}`
}

/** How far away a moment is, in the two largest useful units: `4 min 41 s`, `now`, `2 h`. */
export function formatRemaining(durationMs: number) {
  const seconds = Math.round(durationMs / 1000)
  if (seconds <= 0) return 'now'
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** How long something took or may take: `88 ms`, `2 s`, `4 min 41 s`. */
export const formatDuration = (durationMs: number) =>
  durationMs < 1000 ? `${Math.round(durationMs)} ms` : formatRemaining(durationMs)

/** How far away what is still to come is: `in 40 s`, and `now` once it is there. */
export function formatTimeUntil(iso: string, nowMs: number) {
  const timeLeft = formatRemaining(Date.parse(iso) - nowMs)
  return timeLeft === 'now' ? timeLeft : `in ${timeLeft}`
}

/** How far a moment is from now, in words: `just now`, `5 min ago`, `in 2 h`, and after a month the day itself. */
export function relativeTime(iso: string, nowMs: number) {
  const seconds = Math.floor((nowMs - Date.parse(iso)) / 1000)
  if (seconds < -10) return `in ${formatRemaining(-seconds * 1000)}`
  if (seconds < 10) return 'just now'
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  const days = Math.floor(seconds / 86_400)
  if (days > 30) return localTime(iso).slice(0, 10)
  return days === 1 ? 'yesterday' : `${days} days ago`
}

/** A path as its owner would type it. */
export function shortPath(path: string, homeDirectory: string) {
  return path.startsWith(`${homeDirectory}/`) ? `~${path.slice(homeDirectory.length)}` : path
}

/** As it has to be typed in a shell. */
export const shellWord = (text: string) =>
  /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
