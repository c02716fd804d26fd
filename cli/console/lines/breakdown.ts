import type { BreakdownRow, ProviderState } from '../../client/resources.ts'
import { formatNumber, formatTimeUntil } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import type { Span } from '../spans.ts'
import type { Theme } from '../theme.ts'

/** Formats a share of verified codes; `-` if none was sent. */
export const conversionText = ({ sent, conversion }: Pick<BreakdownRow, 'sent' | 'conversion'>) =>
  sent === 0 ? '-' : `${conversion}%`

/** Returns the columns with the counts of a breakdown. */
export const countColumns = <Row>(countsOf: (row: Row) => BreakdownRow | undefined): Column<Row>[] => [
  { title: 'SENT', width: 7, align: 'right', cell: (row) => numberText(countsOf(row)?.sent) },
  {
    title: 'VERIFIED',
    width: 8,
    align: 'right',
    dropPriority: 2,
    cell: (row) => numberText(countsOf(row)?.verified),
  },
  {
    title: 'FAILED',
    width: 7,
    align: 'right',
    dropPriority: 1,
    cell: (row) => numberText(countsOf(row)?.failed),
  },
  {
    title: 'CONV',
    width: 4,
    align: 'right',
    cell: (row) => {
      const counts = countsOf(row)
      return counts === undefined ? '-' : conversionText(counts)
    },
  },
]

const numberText = (count: number | undefined) => (count === undefined ? '0' : formatNumber(count))

/** Formats the circuit of a provider: `● ready`, `✗ retry in 40 s`; `✗ failing` once the next message tries it. */
export const circuitSpan = ({ circuit, retryAt }: ProviderState, theme: Theme, nowMs: number): Span => {
  if (circuit === 'closed') return theme.status('good', 'ready')
  const isPaused = retryAt !== null && Date.parse(retryAt) > nowMs
  return theme.status('bad', isPaused ? `retry ${formatTimeUntil(retryAt, nowMs)}` : 'failing')
}
