import type { Key } from 'ink'

/** How keys are shown where their names are too long. */
const keyLabels: Partial<Record<string, string>> = {
  up: '↑',
  down: '↓',
  left: '←',
  right: '→',
  pagedown: 'PgDn',
  pageup: 'PgUp',
  'shift-tab': 'S-tab',
}

/** Formats a key for the screen: `^C`, `PgDn`, `↑`. */
export const formatKey = (key: string, isAscii: boolean) =>
  key.startsWith('ctrl-') ? `^${key.slice(5).toUpperCase()}` : (!isAscii && keyLabels[key]) || key

/** Names a key press that Ink reports. Text is its own name; with Alt it becomes `alt-x`, which nothing is bound to. */
export function keyName(input: string, key: Key): string {
  if (key.upArrow) return 'up'
  if (key.downArrow) return 'down'
  if (key.leftArrow) return 'left'
  if (key.rightArrow) return 'right'
  if (key.pageDown) return 'pagedown'
  if (key.pageUp) return 'pageup'
  if (key.home) return 'home'
  if (key.end) return 'end'
  if (key.return) return 'enter'
  if (key.escape) return 'esc'
  if (key.tab) return key.shift ? 'shift-tab' : 'tab'
  if (key.backspace || key.delete) return 'backspace'
  if (key.ctrl) return `ctrl-${input}`
  return key.meta ? `alt-${input}` : input
}
