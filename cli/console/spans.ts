import { cut, printable } from '../terminal/text.ts'

/** Colours a text and leaves its width as it is. */
export type Painter = (text: string) => string

/**
 * A piece of a line. The text may come from anywhere: control characters are made harmless where it is drawn, which is
 * also the only place where colours become escape sequences.
 */
export type Span = string | { text: string; paint?: Painter | undefined }

export type Line = Span | readonly Span[]

const isMany = (line: Line): line is readonly Span[] => Array.isArray(line)

export const spansOf = (line: Line): readonly Span[] => (isMany(line) ? line : [line])

export const textOf = (line: Line) =>
  spansOf(line)
    .map((span) => (typeof span === 'string' ? span : span.text))
    .join('')

/** How many columns the line takes, wide characters counted as two. */
export const widthOf = (line: Line) => Bun.stringWidth(printable(textOf(line)))

/** The line as the terminal gets it, at most `width` columns; what is too long ends with `more`. */
export function drawLine(line: Line, width: number, more: string): string {
  let room = width
  let drawn = ''
  for (const span of spansOf(line)) {
    if (room <= 0) break
    const { text, paint = same } = typeof span === 'string' ? { text: span } : span
    const shown = cut(printable(text), room, more)
    room -= Bun.stringWidth(shown)
    drawn += shown === '' ? '' : paint(shown)
  }
  return drawn
}

const same: Painter = (text) => text

/** The span in exactly `width` columns. */
export function fitSpan(span: Span, width: number, more: string, align: 'left' | 'right' = 'left'): Span {
  const { text, paint } = typeof span === 'string' ? { text: span } : span
  const shown = cut(printable(text), width, more)
  const spaces = ' '.repeat(Math.max(0, width - Bun.stringWidth(shown)))
  return { text: align === 'right' ? spaces + shown : shown + spaces, paint }
}

/** One line with `left` at its beginning and `right` at its end; the left gives way where both do not fit. */
export function spread(left: Line, right: Line, width: number): readonly Span[] {
  const rightWidth = widthOf(right)
  const leftRoom = Math.max(0, width - rightWidth - (rightWidth > 0 ? 1 : 0))
  return [
    ...shorten(left, leftRoom),
    ' '.repeat(Math.max(0, width - rightWidth - Math.min(widthOf(left), leftRoom))),
    ...spansOf(right),
  ]
}

/** The same spans, cut off behind `width` columns. */
function shorten(line: Line, width: number): readonly Span[] {
  let room = width
  return spansOf(line).flatMap((span) => {
    const { text, paint } = typeof span === 'string' ? { text: span } : span
    const shown = cut(printable(text), room)
    room -= Bun.stringWidth(shown)
    return shown === '' ? [] : [{ text: shown, paint }]
  })
}

/** The end of a text that is longer than its place, which is where it is typed. */
export function tailOf(text: string, width: number) {
  let tail = text
  while (Bun.stringWidth(tail) > width) tail = [...tail].slice(1).join('')
  return tail
}

/** The text in pieces of at most `width` columns, wherever that breaks it. */
export function breakText(text: string, width: number): string[] {
  const pieces: string[] = []
  let rest = printable(text)
  while (rest !== '') {
    const piece = cut(rest, width) || rest
    pieces.push(piece)
    rest = rest.slice(piece.length)
  }
  return pieces
}

/** Words in lines of at most `width` columns; a word that is longer itself is broken. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of printable(text.replaceAll(/\s+/g, ' ').trim()).split(' ')) {
    const joined = line === '' ? word : `${line} ${word}`
    if (Bun.stringWidth(joined) <= width) {
      line = joined
      continue
    }
    if (line !== '') lines.push(line)
    line = word
    for (let head = headOf(line, width); head !== ''; head = headOf(line, width)) {
      lines.push(head)
      line = line.slice(head.length)
    }
  }
  return [...lines, line]
}

/** What of a word that is too long goes on this line. */
const headOf = (word: string, width: number) =>
  width > 1 && Bun.stringWidth(word) > width ? cut(word, width) : ''
