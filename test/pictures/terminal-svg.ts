import type { IBuffer, IBufferCell } from '@xterm/headless'

/** Colours of the terminal in pictures: the 16 of the palette, then text and background. */
const palette = [
  '#1b2130',
  '#f7768e',
  '#7bd88f',
  '#e5c07b',
  '#6cb6ff',
  '#c39bf2',
  '#56d4dd',
  '#c8d0e0',
  '#6b7589',
  '#ff8a9e',
  '#98e5a8',
  '#f0d399',
  '#8ec7ff',
  '#d5b8f7',
  '#7fe3ea',
  '#ffffff',
]
const text = '#d5dbe8'
const background = '#10141c'

const cellWidth = 8.4
const lineHeight = 18
const padding = 14
const titleHeight = 30

/** Fonts that have every symbol of the console, with cells of the same width. */
const font = "ui-monospace, 'DejaVu Sans Mono', Menlo, 'Cascadia Mono', Consolas, monospace"

/** Draws the screen of an emulator as SVG, in the frame of a window. It loads nothing, so any page may show it. */
export function drawTerminal(buffer: IBuffer, columns: number, rows: number, title: string): string {
  const width = Math.ceil(columns * cellWidth + 2 * padding)
  const height = rows * lineHeight + 2 * padding + titleHeight
  const lines = Array.from({ length: rows }, (_, row) => drawLine(buffer, row, columns))
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (color, at) => `<circle cx="${18 + at * 18}" cy="16" r="5.5" fill="${color}"/>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title)}">
<rect width="${width}" height="${height}" rx="9" fill="${background}" stroke="#2b3444"/>
${dots.join('')}
<text x="${width / 2}" y="20" fill="#8b96ab" font-family="system-ui, sans-serif" font-size="12" text-anchor="middle">${escapeXml(title)}</text>
<g font-family="${font}" font-size="14">
${lines.filter((line) => line !== '').join('\n')}
</g>
</svg>
`
}

/** Draws the runs of equal style of one line. Each run states its width, so that columns align in any font. */
function drawLine(buffer: IBuffer, row: number, columns: number): string {
  const line = buffer.getLine(buffer.baseY + row)
  if (!line) return ''
  const top = titleHeight + padding + row * lineHeight
  const runs: { start: number; length: number; text: string; style: Style }[] = []
  for (let column = 0; column < columns; column++) {
    const cell = line.getCell(column)
    if (!cell || cell.getWidth() === 0) continue
    const style = styleOf(cell)
    const last = runs.at(-1)
    const characters = cell.getChars() || ' '
    if (last && isSameStyle(last.style, style)) {
      last.text += characters
      last.length += cell.getWidth()
    } else runs.push({ start: column, length: cell.getWidth(), text: characters, style })
  }
  return runs.map((run) => drawRun(run, top)).join('')
}

type Style = {
  color: string
  back: string | null
  isBold: boolean
  isDim: boolean
  isUnderlined: boolean
  /** Whether it is a block element, which is drawn and not written. */
  isBlock: boolean
}

function drawRun(
  { start, length, text: content, style }: { start: number; length: number; text: string; style: Style },
  top: number,
): string {
  const x = padding + start * cellWidth
  const back =
    style.back === null
      ? ''
      : `<rect x="${round(x)}" y="${top}" width="${round(length * cellWidth)}" height="${lineHeight}" fill="${style.back}"/>`
  // Drawn, because lines of text leave gaps between blocks, and fonts differ in them.
  if (style.isBlock) return back + drawBlocks(content, x, top, style.color)
  const visible = content.trim()
  if (visible === '') return back
  const indent = content.length - content.trimStart().length
  const attributes = [
    `x="${round(x + indent * cellWidth)}"`,
    `y="${top + 13.5}"`,
    `fill="${style.color}"`,
    `textLength="${round([...visible].length * cellWidth)}"`,
    ...(style.isBold ? ['font-weight="700"'] : []),
    ...(style.isDim ? ['opacity="0.6"'] : []),
    ...(style.isUnderlined ? ['text-decoration="underline"'] : []),
  ]
  // SVG collapses ordinary spaces.
  return `${back}<text ${attributes.join(' ')}>${escapeXml(visible).replaceAll(' ', '\u00a0')}</text>`
}

/** Draws block elements, from one eighth of a cell to all of it. */
const drawBlocks = (content: string, x: number, top: number, color: string) =>
  [...content]
    .map((character, index) => {
      const eighths = character.charCodeAt(0) - 0x2580
      const height = (lineHeight * eighths) / 8
      return `<rect x="${round(x + index * cellWidth)}" y="${round(top + lineHeight - height)}" width="${cellWidth + 0.3}" height="${round(height)}" fill="${color}"/>`
    })
    .join('')

function styleOf(cell: IBufferCell): Style {
  const front = cell.isFgDefault() ? text : colorOf(cell.getFgColor(), cell.isFgRGB())
  const back = cell.isBgDefault() ? null : colorOf(cell.getBgColor(), cell.isBgRGB())
  const isInverse = cell.isInverse() !== 0
  return {
    color: isInverse ? (back ?? background) : front,
    back: isInverse ? front : back,
    isBold: cell.isBold() !== 0,
    isDim: cell.isDim() !== 0,
    isUnderlined: cell.isUnderline() !== 0,
    isBlock: /[▁-█]/.test(cell.getChars()),
  }
}

const isSameStyle = (a: Style, b: Style) =>
  a.color === b.color &&
  a.back === b.back &&
  a.isBold === b.isBold &&
  a.isDim === b.isDim &&
  a.isUnderlined === b.isUnderlined &&
  a.isBlock === b.isBlock

/** Converts a colour of the palette, of the cube of 216, of the 24 greys, or of 24 bits. */
function colorOf(color: number, isRgb: boolean): string {
  if (isRgb) return `#${color.toString(16).padStart(6, '0')}`
  if (color < 16) return palette[color] ?? text
  if (color >= 232) return `#${(8 + (color - 232) * 10).toString(16).padStart(2, '0').repeat(3)}`
  const level = (digit: number) => (digit === 0 ? 0 : 55 + digit * 40).toString(16).padStart(2, '0')
  const index = color - 16
  return `#${level(Math.floor(index / 36))}${level(Math.floor(index / 6) % 6)}${level(index % 6)}`
}

const round = (value: number) => Math.round(value * 100) / 100

const escapeXml = (value: string) =>
  value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
