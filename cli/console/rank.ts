import { go } from 'fuzzysort'
import type { Choice } from './console-context.ts'

/**
 * Ranks options by how well they match a text, the best first; letters may be missing between those typed. An empty text
 * keeps all options in their order.
 */
export function rank(text: string, choices: readonly Choice[]): readonly Choice[] {
  if (text.trim() === '') return choices
  const keys = [({ label }: Choice) => label, ({ detail }: Choice) => detail, ({ search }: Choice) => search]
  return go(text.trim(), choices, { keys, limit: 0, threshold: 0.2 }).map(({ obj }) => obj)
}
