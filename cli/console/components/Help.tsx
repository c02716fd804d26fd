import { useState } from 'react'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useShell } from '../hooks/use-shell.ts'
import type { Shown } from '../key-router.ts'
import { shownKey } from '../keymap.ts'
import { screens } from '../screens.ts'
import { spread, type Line } from '../spans.ts'
import { Lines } from './Lines.tsx'

type Props = { shown: readonly Shown[]; width: number; height: number }

/** Every key that was in force when `?` was pressed, and the commands that do the same. */
export function Help({ shown, width, height }: Props) {
  const { theme, shell } = useConsole()
  const { screen } = useShell()
  const { paint } = theme
  const close = () => shell.set((before) => ({ ...before, isHelp: false }))
  const current = screens.find(({ name }) => name === screen)
  const here = shown.filter(({ section }) => section !== 'everywhere')
  const everywhere = shown.filter(({ section }) => section === 'everywhere')
  const keyLine = ({ keys, label, about, unavailable }: Shown): Line => [
    '   ',
    {
      text: keys
        .map((key) => shownKey(key, theme.isAscii))
        .join(' ')
        .padEnd(14),
      paint: paint.cyan,
    },
    about ?? label,
    unavailable === null ? '' : { text: `  (${unavailable})`, paint: paint.dim },
  ]
  const heading = (text: string): Line => ({ text: ` ${text}`, paint: paint.bold })
  const lines: Line[] = [
    ...(here.length > 0 ? [heading(`In ${current?.title ?? ''}`), ...here.map(keyLine), ''] : []),
    heading('Everywhere'),
    ['   ', { text: '1 to 6'.padEnd(14), paint: paint.cyan }, 'the six screens'],
    ...everywhere.filter(({ keys }) => !/^\d$/.test(keys[0] ?? '')).map(keyLine),
    '',
    heading('The same without the console'),
    ...(current?.commands ?? []).map((command): Line => `   ${command}`),
  ]
  const [top, setTop] = useState(0)
  const last = Math.max(0, lines.length - height)
  const scroll = (by: number) => setTop((before) => Math.max(0, Math.min(last, before + by)))
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
  const from = Math.min(top, last)
  const visible = lines.slice(from, from + height)
  const more = { text: `${theme.symbols.down} ${last - from} more lines `, paint: paint.yellow }
  if (from < last) visible.push(spread(visible.pop() ?? '', more, width))
  return <Lines lines={visible} width={width} height={height} />
}
