import { Box } from 'ink'
import { useConsole } from '../console-context.ts'
import { justify, displayWidth, wrap, type Line } from '../spans.ts'
import { Lines } from './Lines.tsx'

type Props = {
  title: string
  lines: readonly Line[]
  /** Width of the screen body; the box is centred in it. */
  width: number
  height: number
}

const boxWidthMax = 76

/** Returns the width of the text in a dialog, in columns. */
export const dialogTextWidth = (width: number) => Math.min(boxWidthMax, width - 2) - 4

/** Wraps plain sentences to the width of a dialog. Lines made of several spans are not wrapped. */
export const wrapLines = (lines: readonly Line[], width: number): Line[] =>
  lines.flatMap((line): Line[] => (typeof line === 'string' ? wrap(line, dialogTextWidth(width)) : [line]))

/** Draws a titled box over the screen. */
export function DialogBox({ title, lines, width, height }: Props) {
  const { theme } = useConsole()
  const { paint, symbols } = theme
  const innerWidth = dialogTextWidth(width)
  const [topLeft = '', topRight = '', bottomLeft = '', bottomRight = ''] = symbols.corners
  const side = { text: symbols.bar, paint: paint.yellow }
  // If the lines do not fit, the explanation at the top is cut, not the input and the errors at the bottom.
  const visibleLines = lines.slice(-Math.max(1, height - 2))
  const heading = ` ${title} `
  const topRule = symbols.rule.repeat(Math.max(0, innerWidth + 1 - displayWidth(heading)))
  const framedLines: Line[] = [
    [
      { text: topLeft + symbols.rule, paint: paint.yellow },
      { text: heading, paint: paint.bold },
      { text: topRule + topRight, paint: paint.yellow },
    ],
    ...visibleLines.map((line) => [side, ' ', ...justify(line, '', innerWidth), ' ', side]),
    { text: bottomLeft + symbols.rule.repeat(innerWidth + 2) + bottomRight, paint: paint.yellow },
  ]
  return (
    <Box
      position="absolute"
      left={Math.floor((width - innerWidth - 4) / 2)}
      top={Math.max(0, Math.floor((height - framedLines.length) / 2))}
    >
      <Lines lines={framedLines} width={innerWidth + 4} />
    </Box>
  )
}
