import { useState } from 'react'
import { useConsole } from '../console-context.ts'
import { justify, type Line } from '../spans.ts'

/** Scrolls through lines that are more than fit. @returns the lines to draw, and the handlers of the keys that move */
export function useScroll(lines: readonly Line[], { width, height }: { width: number; height: number }) {
  const { theme } = useConsole()
  const [top, setTop] = useState(0)
  const topMax = Math.max(0, lines.length - height)
  const scroll = (delta: number) => setTop((previous) => Math.max(0, Math.min(topMax, previous + delta)))
  const first = Math.min(top, topMax)
  const visible = lines.slice(first, first + height)
  const more = { text: `${theme.symbols.down} ${topMax - first} more lines `, paint: theme.paint.yellow }
  if (first < topMax) visible.push(justify(visible.pop() ?? '', more, width))
  return {
    visible,
    handlers: {
      down: () => scroll(1),
      up: () => scroll(-1),
      pageDown: () => scroll(height),
      pageUp: () => scroll(-height),
    },
  }
}
