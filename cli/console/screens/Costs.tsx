import { Box } from 'ink'
import { costOf, formatMoney, formatUnitCost, sumCosts } from '../../client/costs.ts'
import type { CostRow } from '../../client/resources.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { Rule } from '../components/Rule.tsx'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { useResource } from '../hooks/use-resource.ts'
import { useOnlyEnvironment } from '../hooks/use-shell.ts'
import { formatNumber } from '../../terminal/text.ts'
import { conversionText } from '../lines/breakdown.ts'
import { barWidth, costBar, totalLines } from '../lines/costs.ts'
import { nextRange, rangeSpans, type Range } from '../lines/overview.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import type { Theme } from '../theme.ts'

/** Screen with the cost per verified code, by country and provider. */
export const costsScreen: Screen = {
  title: 'Costs',
  commands: ['otpd analytics costs', 'otpd analytics costs --csv', 'otpd docs costs'],
  View: CostsView,
}

/** Costs change slowly. */
const intervalMs = 10_000

function CostsView({ width, height }: ScreenProps) {
  const { theme, copy } = useConsole()
  const environment = useOnlyEnvironment()
  const [range, setRange] = usePersistentState<Range>('costs range', '30d')
  const costs = useResource('/v1/analytics/costs', { query: { range, environment } }, { intervalMs })
  const rows = costs.data ?? []
  const currency = rows[0]?.currency ?? null
  const totals = sumCosts(rows)
  const heading = totalLines(totals, currency, width, theme)
  const list = useList({
    name: 'costs',
    rows: currency === null ? [] : rows,
    height: height - heading.length - 2,
    getRowId: ({ key, provider }) => `${key} ${provider}`,
    getFilterText: ({ key, name, provider }) => [key ?? '', name ?? '', provider].join(' '),
  })
  const { selected } = list
  useKeys('costs', {
    range: () => setRange(nextRange(range)),
    copy: selected && (() => copy(selected.costPerVerified ?? '-', 'cost per verified code')),
  })
  if (costs.data === undefined) return <LoadingOrError polled={costs} width={width} height={height} />
  const dearest = Math.max(0, ...rows.map(({ costPerVerified }) => Number(costPerVerified ?? 0)))
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={heading} width={width} />
      <ListTable
        list={list}
        columns={columnsFor(dearest, barWidth(width), totals, theme)}
        width={width}
        empty={currency === null && rows.length > 0 ? noCurrency : noMessages}
      />
      <Rule
        width={width}
        title={{ text: 'by country and provider, the dearest first', paint: theme.paint.dim }}
        remark={rangeSpans(range, theme.paint)}
      />
    </Box>
  )
}

const columnsFor = (
  dearest: number,
  size: number,
  { saved, relayed }: ReturnType<typeof sumCosts>,
  theme: Theme,
): Column<CostRow>[] => [
  { title: 'COUNTRY', width: 12, grow: 2, maxWidth: 28, cell: ({ key, name }) => name ?? key ?? 'unknown' },
  { title: 'PROVIDER', width: 8, grow: 1, maxWidth: 24, cell: ({ provider }) => provider },
  { title: 'SENT', width: 7, align: 'right', cell: ({ sent }) => formatNumber(sent) },
  ...(relayed > 0 ? [relayedColumn] : []),
  {
    title: 'VERIFIED',
    width: 8,
    align: 'right',
    dropPriority: 3,
    cell: ({ verified }) => formatNumber(verified),
  },
  { title: 'CONV', width: 4, align: 'right', dropPriority: 2, cell: conversionText },
  {
    title: 'MEDIAN',
    width: 6,
    align: 'right',
    dropPriority: 4,
    cell: ({ medianSeconds }) => (medianSeconds == null ? '-' : `${medianSeconds} s`),
  },
  {
    title: 'FILTERED',
    width: 8,
    align: 'right',
    dropPriority: 5,
    cell: ({ blocked }) => formatNumber(blocked ?? 0),
  },
  { title: 'COST', width: 10, align: 'right', cell: (row) => formatMoney(costOf(row)) },
  {
    title: 'PER CODE',
    width: 8,
    align: 'right',
    cell: ({ costPerVerified }) => formatUnitCost(costPerVerified),
  },
  ...(saved === null ? [] : [savedColumn]),
  {
    title: '',
    width: size,
    dropPriority: saved === null ? 1 : 6,
    cell: ({ costPerVerified }) => ({
      text: costBar(Number(costPerVerified ?? 0), dearest, size, theme),
      paint: theme.paint.cyan,
    }),
  },
]

/** Messages with codes of other systems. */
const relayedColumn: Column<CostRow> = {
  title: 'RELAYED',
  width: 7,
  align: 'right',
  dropPriority: 5,
  cell: ({ relayed }) => formatNumber(relayed),
}

const savedColumn: Column<CostRow> = {
  title: 'SAVED',
  width: 8,
  align: 'right',
  cell: ({ saved }) => formatMoney(saved),
}

const noMessages = ['No codes were sent through a provider in these days.']

const noCurrency = [
  'No costs are counted.',
  '',
  'The operator sets the currency, and the prices of each provider:',
  '',
  '  otpd docs costs',
]
