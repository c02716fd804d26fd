import { useConsole } from '../console-context.ts'
import type { Shown } from '../key-router.ts'
import { shownKey } from '../keymap.ts'
import { spread, widthOf, type Span } from '../spans.ts'
import { useStore } from '../store.ts'
import type { Theme } from '../theme.ts'
import { Lines } from './Lines.tsx'

/** The keys that are in force, the nearest first, as many as there is room for; the ways out always. */
export function Footer({ width }: { width: number }) {
  const { keys, theme } = useConsole()
  useStore(keys.version)
  const shown = keys.shown().filter(({ isQuiet }) => isQuiet !== true)
  // Of the ways on, one is enough where there is little room.
  const hasEsc = shown.some(({ keys: [key] }) => key === 'esc')
  const isLast = ({ isAlways, keys: [key] }: Shown) => isAlways && !(hasEsc && key === 'tab')
  const right = shown.filter(isLast).flatMap((one) => hint(one, theme))
  const room = width - widthOf(right) - 1
  const left: Span[] = [' ']
  for (const one of shown.filter((other) => !isLast(other))) {
    const next = hint(one, theme)
    if (widthOf([...left, ...next]) > room) break
    left.push(...next)
  }
  return <Lines lines={[spread(left, right, width)]} width={width} />
}

/** What is unavailable now is dim as a whole, and in brackets where there are no colours to tell it by. */
function hint({ keys, label, unavailable }: Shown, { paint, isAscii }: Theme): Span[] {
  const key = shownKey(keys[0] ?? '', isAscii)
  if (unavailable !== null) return [{ text: `(${key} ${label})`, paint: paint.dim }, '  ']
  return [{ text: key, paint: paint.cyan }, ` ${label}  `]
}
