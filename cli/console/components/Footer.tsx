import { useConsole } from '../console-context.ts'
import type { ActiveBinding } from '../key-router.ts'
import { formatKey } from '../key-names.ts'
import { justify, displayWidth, type Span } from '../spans.ts'
import { useStore } from '../store.ts'
import type { Theme } from '../theme.ts'
import { Lines } from './Lines.tsx'

/** Lists the active keys, topmost layer first, as far as they fit. Pinned keys are always shown. */
export function Footer({ width }: { width: number }) {
  const { keys, theme } = useConsole()
  useStore(keys.version)
  const bindings = keys.activeBindings().filter(({ isHelpOnly }) => isHelpOnly !== true)
  // esc already leads out of here; tab would take room from the other keys.
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

/** Formats one key. An unavailable one is dim and in parentheses, so that it is recognizable without colours. */
function hint({ keys, label, unavailable }: ActiveBinding, { paint, isAscii }: Theme): Span[] {
  const key = formatKey(keys[0] ?? '', isAscii)
  if (unavailable !== null) return [{ text: `(${key} ${label})`, paint: paint.dim }, '  ']
  return [{ text: key, paint: paint.cyan }, ` ${label}  `]
}
