import type { createColors } from 'picocolors'

export type Paint = ReturnType<typeof createColors>

/**
 * Text from elsewhere (a project's name, a server's message) without control characters, which could move the
 * cursor, recolour the screen or forge a line of ours.
 */
export const printable = (text: string) =>
  text.replaceAll(/\p{Cc}|\p{Cf}/gu, (found) => (found === '\u200d' ? found : '�'))

/**
 * Columns under headings, two spaces apart, as wide as their widest cell. Cells may be coloured. Where there is a
 * `width` to keep to, the widest columns give way; that of the first id, which is there to be copied, never.
 */
export function table(headings: string[], rows: string[][], paint: Paint, width: number | null = null) {
  const lines = [headings.map((heading) => paint.dim(heading)), ...rows]
  const widths = headings.map((_, column) =>
    Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ''))),
  )
  const isId = headings.map((_, column) => rows.some((row) => idPattern.test(row[column] ?? '')))
  if (width !== null) narrow(widths, isId, width - 2 * (headings.length - 1))
  return lines
    .map((line) => line.map((cell, column) => fit(cell, widths[column] ?? 0)).join('  '))
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
function narrow(widths: number[], isId: boolean[], available: number) {
  const tooWide = () => widths.reduce((sum, one) => sum + one, 0) - available
  const cutWords = (widthMin: number) => {
    for (let left = tooWide(); left > 0; left--) {
      const words = widths.map((width, column) => (isId[column] ? 0 : width))
      const widest = Math.max(...words)
      if (widest <= widthMin) return
      widths[words.indexOf(widest)] = widest - 1
    }
  }
  cutWords(readableWidth)
  const firstId = isId.indexOf(true)
  for (let column = widths.length - 1; column > firstId; column--) {
    const width = widths[column] ?? 0
    if (isId[column])
      widths[column] = Math.max(Math.min(width, readableWidth), width - Math.max(0, tooWide()))
  }
  cutWords(columnWidthMin)
}

const fit = (cell: string, width: number) => pad(cut(cell, width, '…'), width)

/**
 * The text in at most so many columns, with `more` at its end where something is left out. It may be coloured.
 * `sliceAnsi` takes a wide character whose second half no longer fits, so it is asked for less until it does.
 */
export function cut(text: string, width: number, more = '') {
  if (Bun.stringWidth(text) <= width) return text
  for (let room = width; room > 0; room--) {
    const shorter = Bun.sliceAnsi(text, 0, room, more)
    if (Bun.stringWidth(shorter) <= width) return shorter
  }
  return ''
}

/** One fact a line, the values aligned; lines whose value is null or undefined are left out. */
export function facts(
  pairs: [label: string, value: string | null | undefined][],
  paint: Paint,
  indent = '  ',
) {
  const shown = pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  const width = Math.max(0, ...shown.map(([label]) => Bun.stringWidth(label)))
  return shown.map(([label, value]) => `${indent}${paint.dim(pad(label, width))}  ${value}`).join('\n')
}

const pad = (text: string, width: number) => text + ' '.repeat(Math.max(0, width - Bun.stringWidth(text)))

/** `2026-11-20 23:24:01` in the reader's own time zone. */
export function localTime(iso: string) {
  const at = new Date(iso)
  const two = (value: number) => String(value).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** The time alone for what happened today, else the day too. */
export function recentTime(iso: string, nowMs: number) {
  const [day = '', time = ''] = localTime(iso).split(' ')
  return localTime(new Date(nowMs).toISOString()).startsWith(day)
    ? time
    : `${day.slice(5)} ${time.slice(0, 5)}`
}

/** How far away a moment is, in the two largest useful units: `4 min 41 s`, `now`, `2 h`. */
export function remaining(durationMs: number) {
  const seconds = Math.round(durationMs / 1000)
  if (seconds <= 0) return 'now'
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** How long something took or may take: `88 ms`, `2 s`, `4 min 41 s`. */
export const lasting = (durationMs: number) =>
  durationMs < 1000 ? `${Math.round(durationMs)} ms` : remaining(durationMs)

/** How far away what is still to come is: `in 40 s`, and `now` once it is there. */
export function comingTime(iso: string, nowMs: number) {
  const left = remaining(Date.parse(iso) - nowMs)
  return left === 'now' ? left : `in ${left}`
}

/** How far a moment is from now, in words: `just now`, `5 min ago`, `in 2 h`, and after a month the day itself. */
export function relativeTime(iso: string, nowMs: number) {
  const seconds = Math.floor((nowMs - Date.parse(iso)) / 1000)
  if (seconds < -10) return `in ${remaining(-seconds * 1000)}`
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
