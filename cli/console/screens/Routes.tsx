import { Box } from 'ink'
import { reasonText } from '../../client/choice-text.ts'
import { formatMoney, formatUnitCost } from '../../client/costs.ts'
import { channelName } from '../../client/log-lines.ts'
import type { RouteState } from '../../client/resources.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { PanelTable } from '../components/PanelTable.tsx'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useResource } from '../hooks/use-resource.ts'
import { formatNumber } from '../../terminal/text.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import type { Theme } from '../theme.ts'

/** Screen with the provider that a message would take, by country, and the estimates behind it. */
export const routesScreen: Screen = {
  title: 'Routes',
  commands: ['otpd routes', 'otpd routes explain REQUEST', 'otpd docs providers'],
  View: RoutesView,
}

const intervalMs = 10_000
/** Title, headings, and a line that says how many more there are. */
const panelExtraLines = 3

type Provider = RouteState['providers'][number]

function RoutesView({ width, height }: ScreenProps) {
  const { theme, copy } = useConsole()
  const routes = useResource('/v1/routes', {}, { intervalMs })
  const rows = routes.data ?? []
  const candidatesMax = Math.max(1, ...rows.map(({ providers }) => providers.length))
  const panelHeight =
    rows.length === 0 ? 0 : Math.min(candidatesMax + panelExtraLines, Math.floor(height / 2))
  const list = useList({
    name: 'routes',
    rows,
    height: height - panelHeight - 1,
    getRowId: ({ country, channel }) => `${country} ${channel}`,
    getFilterText: ({ country, channel, strategy, providers }) =>
      [country, countryName(country), channel, strategy, ...providers.map(({ provider }) => provider)].join(
        ' ',
      ),
  })
  const selected = list.selected
  const first = selected?.providers[0]
  useKeys('routes', { copy: first && (() => copy(first.provider, 'provider')) })
  if (routes.data === undefined) return <LoadingOrError polled={routes} width={width} height={height} />
  return (
    <Box flexDirection="column" width={width} height={height}>
      <ListTable list={list} columns={routeColumns} width={width} empty={empty} />
      {selected !== null && (
        <PanelTable
          title={panelTitle(selected)}
          rows={selected.providers}
          columns={providerColumns(theme)}
          empty=""
          width={width}
          height={panelHeight}
        />
      )}
    </Box>
  )
}

const countryNames = new Intl.DisplayNames('en', { type: 'region' })
const countryName = (country: string) => countryNames.of(country) ?? country

/** Says why the first provider comes first: `Germany, SMS: least cost per verified code`. */
function panelTitle({ country, channel, strategy, reason }: RouteState): string {
  const place = `${countryName(country)}, ${channelName(channel)}`
  if (strategy === 'order' || reason === null) return `${place}: in the order of the configuration`
  return `${place}: ${reasonText(strategy, reason)}`
}

const routeColumns: Column<RouteState>[] = [
  {
    title: 'COUNTRY',
    width: 12,
    grow: 2,
    maxWidth: 28,
    cell: ({ country }) => countryName(country),
  },
  { title: 'CHANNEL', width: 8, dropPriority: 2, cell: ({ channel }) => channelName(channel) },
  { title: 'STRATEGY', width: 10, cell: ({ strategy }) => strategy },
  {
    title: 'NEXT',
    width: 10,
    grow: 1,
    maxWidth: 24,
    cell: ({ providers: [first] }) => first?.provider ?? '-',
  },
  {
    title: 'PER CODE',
    width: 8,
    align: 'right',
    cell: ({ providers: [first] }) => formatUnitCost(first?.costPerVerified),
  },
  {
    title: 'BY ORDER',
    width: 10,
    grow: 1,
    maxWidth: 24,
    dropPriority: 3,
    cell: ({ firstProvider }) => firstProvider,
  },
  { title: 'SENT', width: 7, align: 'right', dropPriority: 1, cell: ({ sent }) => formatNumber(sent) },
  { title: 'SAVED', width: 8, align: 'right', cell: ({ saved }) => formatMoney(saved) },
]

const providerColumns = (theme: Theme): Column<Provider>[] => [
  { title: 'PROVIDER', width: 10, grow: 1, maxWidth: 24, cell: ({ provider }) => provider },
  { title: 'PRICE', width: 8, align: 'right', cell: ({ price }) => price ?? '-' },
  { title: 'CONV', width: 5, align: 'right', cell: ({ conversion }) => `${Math.round(conversion)}%` },
  { title: 'CODES', width: 6, align: 'right', cell: ({ samples }) => formatNumber(samples) },
  {
    title: 'PER CODE',
    width: 8,
    align: 'right',
    cell: ({ costPerVerified }) => formatUnitCost(costPerVerified),
  },
  { title: 'FROM', width: 8, dropPriority: 1, cell: ({ basis }) => basis },
  {
    title: 'STATE',
    width: 14,
    cell: ({ circuit, silent }) =>
      circuit === 'open'
        ? theme.status('bad', 'circuit open')
        : silent
          ? theme.status('warning', 'silent')
          : theme.status('good', 'ready'),
  },
]

const empty = [
  'Countries appear once codes there were verified or expired.',
  '',
  'A route with a strategy then chooses its provider by those codes:',
  '',
  '  otpd docs providers',
]
