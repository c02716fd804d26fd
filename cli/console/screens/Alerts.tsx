import { Box } from 'ink'
import {
  describeAlerts,
  destinationText,
  sendTests,
  testText,
  withRunningHost,
  type AlertState,
  type DestinationState,
} from '../../host/alerts.ts'
import { relativeTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { PanelTable } from '../components/PanelTable.tsx'
import { showError, useConsole, type Console } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePolled } from '../hooks/use-polled.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import { wrap } from '../spans.ts'

type Alert = AlertState['alerts'][number]

/** Screen with what otpd has alerted its operator to, and where the alerts go. Only on the machine of the server. */
export const alertsScreen: Screen = {
  title: 'Alerts',
  commands: ['otpd alerts', 'otpd alerts test', 'otpd doctor'],
  View: AlertsView,
}

const pollMs = 5000

function AlertsView({ width, height }: ScreenProps) {
  const { connection, context } = useConsole()
  const { url } = connection.server
  const state = usePolled(
    'alerts',
    async () => ({
      found: await withRunningHost(context.io, url, 'read', async (host, { alerts }) =>
        describeAlerts(await host.listAlerts(), alerts),
      ),
    }),
    { intervalMs: pollMs },
  )
  if (state.data === undefined) return <LoadingOrError polled={state} width={width} height={height} />
  const { found } = state.data
  if (found === null) return <Lines lines={elsewhere(url, width)} width={width} height={height} />
  return <Alerts state={found} width={width} height={height} />
}

const elsewhere = (url: string, width: number) =>
  [
    '',
    `Alerts are for the operator. They are read on the machine of the server, by a user who can read its data. No server at ${url} uses the data directory of this shell. On the server's machine, name its own:`,
    '',
    'OTPD_DATA_DIR=DIR otpd',
  ].flatMap((text) => (text === '' ? [''] : wrap(text, width - 4).map((line) => `  ${line}`)))

const noAlerts = (destinations: readonly DestinationState[]) =>
  destinations.length > 0
    ? ['Nothing is wrong.']
    : ['Nothing is watched.', '', 'Add [[alerts]] to the configuration: otpd docs alerts']

function Alerts({ state, width, height }: Pick<ScreenProps, 'width' | 'height'> & { state: AlertState }) {
  const console = useConsole()
  const { theme, copy } = console
  const nowMs = useNow()
  const { destinations } = state
  const panelHeight = Math.min(2 + Math.max(1, destinations.length), Math.floor(height / 2))
  const remedyHeight = 3
  const list = useList<Alert>({
    name: 'alerts',
    rows: state.alerts,
    height: height - panelHeight - remedyHeight - 1,
    getRowId: ({ kind, subject }) => `${kind} ${subject}`,
    getFilterText: ({ kind, subject, message }) => `${kind} ${subject} ${message}`,
  })
  const { selected } = list
  const names = destinations.map(({ name }) => name)
  useKeys('alerts', {
    test:
      names.length === 0
        ? { unavailable: 'no destination is configured' }
        : () => void testAll(console, names),
    copy: selected && (() => copy(`${selected.message}\n${selected.remedy}`, 'alert')),
  })
  const columns: Column<Alert>[] = [
    {
      title: 'SEVERITY',
      width: 11,
      cell: ({ severity }) => theme.status(severity === 'critical' ? 'bad' : 'warning', severity),
    },
    { title: 'SINCE', width: 11, cell: ({ since }) => relativeTime(since, nowMs) },
    {
      title: 'ALERT',
      width: 30,
      grow: 1,
      cell: ({ message, isClearing }) => `${isClearing ? '(gone for now) ' : ''}${message}`,
    },
  ]
  const remedy = selected === null ? [] : wrap(selected.remedy, width - 2).slice(0, remedyHeight - 1)
  return (
    <Box flexDirection="column" width={width} height={height}>
      <ListTable list={list} columns={columns} width={width} empty={noAlerts(destinations)} />
      <Lines
        lines={['', ...remedy.map((text) => ({ text: ` ${text}`, paint: theme.paint.dim }))]}
        width={width}
        height={remedyHeight}
      />
      <PanelTable
        title="Sent to"
        rows={destinations}
        columns={destinationColumns(theme, nowMs)}
        empty="No destination is configured."
        width={width}
        height={panelHeight}
      />
    </Box>
  )
}

const destinationColumns = (theme: Console['theme'], nowMs: number): Column<DestinationState>[] => [
  { title: 'NAME', width: 12, cell: ({ name }) => name },
  { title: 'KIND', width: 8, dropPriority: 2, cell: ({ kind }) => kind },
  { title: 'FROM', width: 8, dropPriority: 1, cell: ({ min }) => min },
  {
    title: 'STATE',
    width: 20,
    grow: 1,
    cell: (destination) =>
      theme.status(destination.failure === null ? 'good' : 'warning', destinationText(destination, nowMs)),
  },
]

/** Has the server send a test to all destinations, and shows the results. */
async function testAll(console: Console, names: readonly string[]) {
  const { connection, context, toast, refresh } = console
  toast('sending a test…')
  try {
    const { url } = connection.server
    const results = await withRunningHost(context.io, url, 'write', (host) =>
      sendTests(host, names, context.io),
    )
    const isSent = results?.every(({ sent }) => sent) === true
    toast(results?.map(testText).join('; ') ?? 'the server no longer runs here', isSent ? 'good' : 'bad')
    refresh()
  } catch (error) {
    showError(console, error)
  }
}
