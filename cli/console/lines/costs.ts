import { formatMoney, formatUnitCost, savedText, type sumCosts } from '../../client/costs.ts'
import { wrap, type Line } from '../spans.ts'
import type { Theme } from '../theme.ts'
import { formatNumber } from '../../terminal/text.ts'
import { valueColumns } from './facts.ts'

/** Room for the bars on a screen of a width. */
export const barWidth = (width: number) => Math.max(8, Math.min(40, Math.floor(width / 4) - 8))

/** Draws a bar of full blocks, of `size` for the dearest; a cost above 0 has one at least. */
export const costBar = (cost: number, dearest: number, size: number, { bars }: Theme) =>
  cost <= 0 || dearest <= 0
    ? ''
    : (bars?.bars.at(-1) ?? '█').repeat(Math.max(1, Math.round((size * cost) / dearest)))

/** Formats the sums, side by side under their names, what the cost leaves out, and what strategies saved. */
export function totalLines(
  total: ReturnType<typeof sumCosts>,
  currency: string | null,
  width: number,
  theme: Theme,
): Line[] {
  const { paint } = theme
  if (currency === null) return []
  const facts: [name: string, value: string][] = [
    [`COST (${currency})`, formatMoney(total.cost)],
    ['PER VERIFIED', formatUnitCost(total.costPerVerified)],
    ['MESSAGES', formatNumber(total.sent + total.relayed)],
    ['VERIFIED', formatNumber(total.verified)],
  ]
  const columnWidth = Math.min(24, Math.floor((width - 1) / facts.length))
  const notes = [
    ...(total.estimatedCost > 0 ? [`estimated by prices: ${formatMoney(total.estimatedCost)}`] : []),
    ...(total.relayed > 0
      ? [`codes of other systems: ${formatNumber(total.relayed)} for ${formatMoney(total.relayedCost)}`]
      : []),
    ...(total.unpriced > 0 ? [`without a price: ${formatNumber(total.unpriced)} messages`] : []),
  ]
  return [
    ...valueColumns(facts, columnWidth, theme),
    ...wrap(notes.join(', '), width - 2).map((text) => ({ text: ` ${text}`, paint: paint.dim })),
    ...(total.saved === null ? [] : [savedLine(total.saved, currency, paint)]),
    '',
  ]
}

const savedLine = (saved: number, currency: string, paint: Theme['paint']): Line => [
  { text: ` Strategies ${savedText(saved, currency)}`, paint: saved < 0 ? paint.yellow : paint.green },
  { text: ', compared with the fixed order', paint: paint.dim },
]
