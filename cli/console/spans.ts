import { truncate, printable } from '../terminal/text.ts'

/** Colours a text without changing its width. */
export type Painter = (text: string) => string

/**
 * A piece of a line. Its text may be untrusted: control characters are replaced where it is drawn, which is also the only
 * place where colours become escape sequences.
 */
export type Span = string | PaintedText

type PaintedText = { text: string; paint?: Painter | undefined }

export type Line = Span | readonly Span[]

const isSpanList = (line: Line): line is readonly Span[] => Array.isArray(line)

/** Returns the spans of a line. */
export const toSpans = (line: Line): readonly Span[] => (isSpanList(line) ? line : [line])

const toPainted = (span: Span): PaintedText => (typeof span === 'string' ? { text: span } : span)

/** Returns the text of a line without colours. */
export const plainText = (line: Line) =>
  toSpans(line)
    .map((span) => toPainted(span).text)
    .join('')

/** Returns the width of a line in columns; wide characters count as two. */
export const displayWidth = (line: Line) => Bun.stringWidth(printable(plainText(line)))

/** Returns a line as it is written to the terminal: at most `width` columns, with `ellipsis` where it is cut. */
export const drawLine = (line: Line, width: number, ellipsis: string): string =>
  truncateSpans(line, width, ellipsis)
    .map(({ text, paint }) => (paint ? paint(text) : text))
    .join('')

/**
 * Formats a selected line: a bar over the whole width, in one colour, since colours of its own would become patches of
 * background. Without colours its pointer alone shows the selection.
 */
export const selectionBar = (
  line: Line,
  width: number,
  { paint, symbols }: { paint: Record<'bold' | 'inverse', Painter>; symbols: { ellipsis: string } },
): Line => {
  const { text } = fitSpan(plainText(line), width, symbols.ellipsis)
  return { text, paint: (value) => paint.inverse(paint.bold(value)) }
}

/** Formats one of several options in a line; the chosen one is in brackets. */
export const optionSpan = (text: string, isChosen: boolean, paint: Record<'bold' | 'dim', Painter>): Span =>
  isChosen ? { text: `[${text}]`, paint: paint.bold } : { text: ` ${text} `, paint: paint.dim }

/** Pads or cuts a span to exactly `width` columns. */
export function fitSpan(
  span: Span,
  width: number,
  ellipsis: string,
  align: 'left' | 'right' = 'left',
): PaintedText {
  const { text, paint } = toPainted(span)
  const visibleText = truncate(printable(text), width, ellipsis)
  const spaces = ' '.repeat(Math.max(0, width - Bun.stringWidth(visibleText)))
  return { text: align === 'right' ? spaces + visibleText : visibleText + spaces, paint }
}

/** Aligns `left` and `right` to the ends of a line; `left` is cut if both do not fit. */
export function justify(left: Line, right: Line, width: number): readonly Span[] {
  const rightWidth = displayWidth(right)
  const leftRoom = Math.max(0, width - rightWidth - (rightWidth > 0 ? 1 : 0))
  return [
    ...truncateSpans(left, leftRoom),
    ' '.repeat(Math.max(0, width - rightWidth - Math.min(displayWidth(left), leftRoom))),
    ...toSpans(right),
  ]
}

/** Cuts spans after `width` columns. */
function truncateSpans(line: Line, width: number, ellipsis?: string): readonly PaintedText[] {
  let columnsLeft = width
  return toSpans(line).flatMap((span) => {
    const { text, paint } = toPainted(span)
    const visibleText = truncate(printable(text), columnsLeft, ellipsis)
    columnsLeft -= Bun.stringWidth(visibleText)
    return visibleText === '' ? [] : [{ text: visibleText, paint }]
  })
}

/** Returns the end of a text that is too long for its field, where the user types. */
export function visibleTail(text: string, width: number) {
  let tail = text
  while (Bun.stringWidth(tail) > width) tail = [...tail].slice(1).join('')
  return tail
}

/** Breaks a text into pieces of at most `width` columns, also inside words. */
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

/** Wraps a text into lines of at most `width` columns; words that are longer are broken. */
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

/** Returns the part of an overlong word that fits on a line; empty if the word is not too long. */
const leadingPiece = (word: string, width: number) =>
  width > 1 && Bun.stringWidth(word) > width ? truncate(word, width) : ''
