import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useScroll } from '../hooks/use-scroll.ts'
import type { ActiveBinding } from '../key-router.ts'
import { formatKey } from '../key-names.ts'
import type { Screen } from '../screen.ts'
import type { Line } from '../spans.ts'
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
  const { visible, handlers } = useScroll(lines, { width, height })
  useKeys('help', { ...handlers, close }, { isModal: true })
  return <Lines lines={visible} width={width} height={height} />
}
