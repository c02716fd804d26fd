import { Box } from 'ink'
import { reasonWords } from '../../client/log-lines.ts'
import type { ProviderState } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { Rule } from '../components/Rule.tsx'
import { useConsole } from '../console-context.ts'
import { useBreakdown } from '../hooks/use-breakdown.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import type { Polled } from '../hooks/use-polled.ts'
import { useProviders } from '../hooks/use-providers.ts'
import { circuitSpan, countColumns } from '../lines/breakdown.ts'
import { nextRange, rangeSpans, type Range } from '../lines/overview.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import { ProviderDetail } from './ProviderDetail.tsx'

/** Screen with the providers that send the messages, their circuits, and what they did for this developer. */
export const providersScreen: Screen = {
  title: 'Providers',
  commands: ['otpd provider list', 'otpd provider test NAME PHONE', 'otpd doctor'],
  View: ProvidersView,
}

function ProvidersView(props: ScreenProps) {
  const providers = useProviders()
  const [openName, setOpenName] = usePersistentState<string | null>('providers open', null)
  const opened = providers.data?.find(({ name }) => name === openName)
  return opened === undefined ? (
    <ProviderList {...props} providers={providers} open={setOpenName} />
  ) : (
    <ProviderDetail {...props} provider={opened} close={() => setOpenName(null)} />
  )
}

type ListProps = ScreenProps & { providers: Polled<ProviderState[]>; open(name: string): void }

function ProviderList({ width, height, providers, open }: ListProps) {
  const { theme, copy } = useConsole()
  const nowMs = useNow()
  const [range, setRange] = usePersistentState<Range>('providers range', '30d')
  const counts = useBreakdown('provider', range)
  const list = useList({
    name: 'providers',
    rows: providers.data ?? [],
    height: height - 2,
    getRowId: ({ name }) => name,
    getFilterText: ({ name, title, channels, circuit }) => [name, title, ...channels, circuit].join(' '),
  })
  const { selected } = list
  useKeys('providers', {
    open: selected && (() => open(selected.name)),
    range: () => setRange(nextRange(range)),
    copy: selected && (() => copy(selected.name, 'name')),
  })
  if (providers.data === undefined) return <LoadingOrError polled={providers} width={width} height={height} />
  const columns: Column<ProviderState>[] = [
    { title: 'NAME', width: 8, grow: 3, maxWidth: 30, cell: ({ name }) => name },
    {
      title: 'STATE',
      width: 18,
      grow: 1,
      maxWidth: 18,
      cell: (provider) => circuitSpan(provider, theme, nowMs),
    },
    {
      title: 'LAST FAILURE',
      width: 13,
      dropPriority: 3,
      cell: ({ failure, recentRefusals: [newest] = [] }) =>
        failure !== null ? reasonWords(failure) : newest ? recentTime(newest.at, nowMs) : '-',
    },
    { title: 'KIND', width: 12, grow: 1, maxWidth: 30, dropPriority: 4, cell: ({ title }) => title },
    {
      title: 'CHANNELS',
      width: 8,
      grow: 1,
      maxWidth: 30,
      dropPriority: 5,
      cell: ({ channels }) => channels.join(', '),
    },
    ...countColumns<ProviderState>(({ name }) => counts.data?.find(({ key }) => key === name)),
  ]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <ListTable list={list} columns={columns} width={width} empty={empty} />
      <Rule
        width={width}
        title={{ text: 'counts of your live applications', paint: theme.paint.dim }}
        remark={rangeSpans(range, theme.paint)}
      />
    </Box>
  )
}

const empty = [
  'No provider is configured: codes stay in the inbox, and reach no phone.',
  '',
  "The operator adds providers on the server's machine:",
  '',
  '  otpd provider add',
]
