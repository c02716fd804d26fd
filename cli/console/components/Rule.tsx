import { useConsole } from '../console-context.ts'
import { spansOf, widthOf, type Line } from '../spans.ts'
import { Lines } from './Lines.tsx'

/** A line across, with a title near its beginning and a remark near its end. */
export function Rule({ width, title = '', remark = '' }: { width: number; title?: Line; remark?: Line }) {
  const { theme } = useConsole()
  const rule = (length: number) => ({
    text: theme.symbols.rule.repeat(Math.max(0, length)),
    paint: theme.paint.dim,
  })
  const head: Line = widthOf(title) === 0 ? '' : [rule(2), ' ', ...spansOf(title), ' ']
  const hasRoom = widthOf(head) + widthOf(remark) + 6 <= width
  const tail: Line = widthOf(remark) === 0 || !hasRoom ? '' : [' ', ...spansOf(remark), ' ', rule(2)]
  const between = rule(width - widthOf(head) - widthOf(tail))
  return <Lines lines={[[...spansOf(head), between, ...spansOf(tail)]]} width={width} />
}
