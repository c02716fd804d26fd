import { useConsole } from '../console-context.ts'
import type { ActiveBinding } from '../key-router.ts'
import { formatKey } from '../keymap.ts'
import { justify, displayWidth, type Span } from '../spans.ts'
import { useStore } from '../store.ts'
import type { Theme } from '../theme.ts'
import { Lines } from './Lines.tsx'

/** The keys that are in force, the nearest first, as many as there is room for; the ways out always. */
export function Footer({ width }: { width: number }) {
  const { keys, theme } = useConsole()
  useStore(keys.version)
  const bindings = keys.activeBindings().filter(({ isHelpOnly }) => isHelpOnly !== true)
  // Of the ways on, one is enough where there is little room.
  const hasEsc = bindings.some(({ keys: [key] }) => key === 'esc')
  const isPinnedRight = ({ isPinned, keys: [key] }: ActiveBinding) => isPinned && !(hasEsc && key === 'tab')
  const right = bindings.filter(isPinnedRight).flatMap((binding) => hint(binding, theme))
  const room = width - displayWidth(right) - 1
  const left: Span[] = [' ']
  for (const binding of bindings.filter((candidate) => !isPinnedRight(candidate))) {
    const hintSpans = hint(binding, theme)
    if (displayWidth([...left, ...hintSpans]) > room) break
    left.push(...hintSpans)
  }
  return <Lines lines={[justify(left, right, width)]} width={width} />
}

/** What is unavailable now is dim as a whole, and in brackets where there are no colours to tell it by. */
function hint({ keys, label, unavailable }: ActiveBinding, { paint, isAscii }: Theme): Span[] {
  const key = formatKey(keys[0] ?? '', isAscii)
  if (unavailable !== null) return [{ text: `(${key} ${label})`, paint: paint.dim }, '  ']
  return [{ text: key, paint: paint.cyan }, ` ${label}  `]
}
