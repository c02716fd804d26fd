import { useConsole } from '../console-context.ts'
import { toSpans, displayWidth, type Line } from '../spans.ts'
import { Lines } from './Lines.tsx'

/** A horizontal rule with a title at the left and a remark at the right; the remark is dropped on a narrow screen. */
export function Rule({ width, title = '', remark = '' }: { width: number; title?: Line; remark?: Line }) {
  const { theme } = useConsole()
  const rule = (length: number) => ({
    text: theme.symbols.rule.repeat(Math.max(0, length)),
    paint: theme.paint.dim,
  })
  const head: Line = displayWidth(title) === 0 ? '' : [rule(2), ' ', ...toSpans(title), ' ']
  const hasRoom = displayWidth(head) + displayWidth(remark) + 6 <= width
  const tail: Line = displayWidth(remark) === 0 || !hasRoom ? '' : [' ', ...toSpans(remark), ' ', rule(2)]
  const between = rule(width - displayWidth(head) - displayWidth(tail))
  return <Lines lines={[[...toSpans(head), between, ...toSpans(tail)]]} width={width} />
}
