import { recentTime, relativeTime } from '../../terminal/text.ts'
import { fitSpan, type Line, type Painter } from '../spans.ts'
import type { Theme } from '../theme.ts'

export type Fact = [label: string, value: Line | null]

/** Formats facts, one per line: a label and its value. Facts with a null value are left out. */
export const factLines = (facts: readonly Fact[], { paint }: Theme, labelWidth = 14): Line[] =>
  facts.flatMap(([label, value]) =>
    value === null ? [] : [[{ text: ` ${label.padEnd(labelWidth)}`, paint: paint.dim }, ...[value].flat()]],
  )

/** Formats a time and how far away it is: `11:40:05  5 min ago`. */
export const timeWithAge = (iso: string, nowMs: number) =>
  `${recentTime(iso, nowMs)}  ${relativeTime(iso, nowMs)}`

/** Formats values side by side under their names, in columns of a width. */
export function valueColumns(
  values: ReadonlyArray<[name: string, value: string]>,
  columnWidth: number,
  { paint, symbols }: Theme,
): Line[] {
  const cells = (place: 0 | 1, style: Painter): Line => [
    ' ',
    ...values.map((value) => fitSpan({ text: value[place], paint: style }, columnWidth, symbols.ellipsis)),
  ]
  return [cells(0, paint.dim), cells(1, paint.bold)]
}
