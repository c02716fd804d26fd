import { useState } from 'react'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import type { ActiveBinding } from '../key-router.ts'
import { formatKey } from '../key-names.ts'
import type { Screen } from '../screen.ts'
import { justify, type Line } from '../spans.ts'
import { Lines } from './Lines.tsx'

type Props = {
  screen: Pick<Screen, 'title' | 'commands'>
  bindings: readonly ActiveBinding[]
  width: number
  height: number
}

/** Lists the keys that were active when `?` was pressed, and the commands equivalent to the screen. */
export function Help({ screen, bindings, width, height }: Props) {
  const { theme, shell } = useConsole()
  const { paint } = theme
  const close = () => shell.set((previous) => ({ ...previous, help: null }))
  const { title, commands } = screen
  const contextBindings = bindings.filter(
    ({ section }) => section !== 'everywhere' && section !== 'screens' && section !== 'move',
  )
  const globalBindings = bindings.filter(({ section }) => section === 'move' || section === 'everywhere')
  const keyLine = ({ keys, label, about, unavailable }: ActiveBinding): Line => [
    '   ',
    {
      text: keys
        .map((key) => formatKey(key, theme.isAscii))
        .join(' ')
        .padEnd(14),
      paint: paint.cyan,
    },
    about ?? label,
    unavailable === null ? '' : { text: `  (${unavailable})`, paint: paint.dim },
  ]
  const heading = (text: string): Line => ({ text: ` ${text}`, paint: paint.bold })
  const lines: Line[] = [
    ...(contextBindings.length > 0 ? [heading(`In ${title}`), ...contextBindings.map(keyLine), ''] : []),
    heading('Everywhere'),
    ['   ', { text: '1 to 9, 0, -'.padEnd(14), paint: paint.cyan }, 'switch to a screen'],
    ...globalBindings.map(keyLine),
    '',
    heading('Equivalent commands'),
    ...commands.map((command): Line => `   ${command}`),
  ]
  const [scrollTop, setScrollTop] = useState(0)
  const maxScroll = Math.max(0, lines.length - height)
  const scroll = (delta: number) =>
    setScrollTop((previous) => Math.max(0, Math.min(maxScroll, previous + delta)))
  useKeys(
    'help',
    {
      down: () => scroll(1),
      up: () => scroll(-1),
      pageDown: () => scroll(height),
      pageUp: () => scroll(-height),
      close,
    },
    { isModal: true },
  )
  const firstLine = Math.min(scrollTop, maxScroll)
  const visibleLines = lines.slice(firstLine, firstLine + height)
  const moreHint = { text: `${theme.symbols.down} ${maxScroll - firstLine} more lines `, paint: paint.yellow }
  if (firstLine < maxScroll) visibleLines.push(justify(visibleLines.pop() ?? '', moreHint, width))
  return <Lines lines={visibleLines} width={width} height={height} />
}
