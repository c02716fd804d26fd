import type { Line } from '../spans.ts'
import type { Theme } from '../theme.ts'

export type Fact = [label: string, value: Line | null]

/** Formats facts, one per line: a label and its value. Facts with a null value are left out. */
export const factLines = (facts: readonly Fact[], { paint }: Theme, labelWidth = 14): Line[] =>
  facts.flatMap(([label, value]) =>
    value === null ? [] : [[{ text: ` ${label.padEnd(labelWidth)}`, paint: paint.dim }, ...[value].flat()]],
  )
