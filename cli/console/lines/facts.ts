import type { Line } from '../spans.ts'
import type { Theme } from '../theme.ts'

export type Fact = [label: string, value: Line | null]

/** What is known of something, a fact a line; those without a value are left out. */
export const factLines = (facts: readonly Fact[], { paint }: Theme): Line[] =>
  facts.flatMap(([label, value]) =>
    value === null ? [] : [[{ text: ` ${label.padEnd(13)}`, paint: paint.dim }, ...[value].flat()]],
  )
