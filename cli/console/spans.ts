import { truncate, printable } from '../terminal/text.ts'

/** Colours a text and leaves its width as it is. */
export type Painter = (text: string) => string

/**
 * A piece of a line. The text may come from anywhere: control characters are made harmless where it is drawn, which is
 * also the only place where colours become escape sequences.
 */
export type Span = string | { text: string; paint?: Painter | undefined }

export type Line = Span | readonly Span[]

const isSpanList = (line: Line): line is readonly Span[] => Array.isArray(line)

export const toSpans = (line: Line): readonly Span[] => (isSpanList(line) ? line : [line])

export const plainText = (line: Line) =>
  toSpans(line)
    .map((span) => (typeof span === 'string' ? span : span.text))
    .join('')

/** How many columns the line takes, wide characters counted as two. */
export const displayWidth = (line: Line) => Bun.stringWidth(printable(plainText(line)))

/** The line as the terminal gets it, at most `width` columns; what is too long ends with `more`. */
export function drawLine(line: Line, width: number, ellipsis: string): string {
  let columnsLeft = width
  let output = ''
  for (const span of toSpans(line)) {
    if (columnsLeft <= 0) break
    const { text, paint = identity } = typeof span === 'string' ? { text: span } : span
    const visibleText = truncate(printable(text), columnsLeft, ellipsis)
    columnsLeft -= Bun.stringWidth(visibleText)
    output += visibleText === '' ? '' : paint(visibleText)
  }
  return output
}

const identity: Painter = (text) => text

/** The span in exactly `width` columns. */
export function fitSpan(span: Span, width: number, ellipsis: string, align: 'left' | 'right' = 'left'): Span {
  const { text, paint } = typeof span === 'string' ? { text: span } : span
  const visibleText = truncate(printable(text), width, ellipsis)
  const spaces = ' '.repeat(Math.max(0, width - Bun.stringWidth(visibleText)))
  return { text: align === 'right' ? spaces + visibleText : visibleText + spaces, paint }
}

/** One line with `left` at its beginning and `right` at its end; the left gives way where both do not fit. */
export function justify(left: Line, right: Line, width: number): readonly Span[] {
  const rightWidth = displayWidth(right)
  const leftRoom = Math.max(0, width - rightWidth - (rightWidth > 0 ? 1 : 0))
  return [
    ...truncateSpans(left, leftRoom),
    ' '.repeat(Math.max(0, width - rightWidth - Math.min(displayWidth(left), leftRoom))),
    ...toSpans(right),
  ]
}

/** The same spans, cut off behind `width` columns. */
function truncateSpans(line: Line, width: number): readonly Span[] {
  let columnsLeft = width
  return toSpans(line).flatMap((span) => {
    const { text, paint } = typeof span === 'string' ? { text: span } : span
    const visibleText = truncate(printable(text), columnsLeft)
    columnsLeft -= Bun.stringWidth(visibleText)
    return visibleText === '' ? [] : [{ text: visibleText, paint }]
  })
}

/** The end of a text that is longer than its place, which is where it is typed. */
export function visibleTail(text: string, width: number) {
  let tail = text
  while (Bun.stringWidth(tail) > width) tail = [...tail].slice(1).join('')
  return tail
}

/** The text in pieces of at most `width` columns, wherever that breaks it. */
export function breakText(text: string, width: number): string[] {
  const pieces: string[] = []
  let remainder = printable(text)
  while (remainder !== '') {
    const piece = truncate(remainder, width) || remainder
    pieces.push(piece)
    remainder = remainder.slice(piece.length)
  }
  return pieces
}

/** Words in lines of at most `width` columns; a word that is longer itself is broken. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of printable(text.replaceAll(/\s+/g, ' ').trim()).split(' ')) {
    const extendedLine = line === '' ? word : `${line} ${word}`
    if (Bun.stringWidth(extendedLine) <= width) {
      line = extendedLine
      continue
    }
    if (line !== '') lines.push(line)
    line = word
    for (let head = leadingPiece(line, width); head !== ''; head = leadingPiece(line, width)) {
      lines.push(head)
      line = line.slice(head.length)
    }
  }
  return [...lines, line]
}

/** What of a word that is too long goes on this line. */
const leadingPiece = (word: string, width: number) =>
  width > 1 && Bun.stringWidth(word) > width ? truncate(word, width) : ''
