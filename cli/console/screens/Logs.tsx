import { Box } from 'ink'
import { useState } from 'react'
import { entryDetail } from '../../client/log-lines.ts'
import type { LogEntry } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { LogDetail, logDetailHeight } from '../components/LogDetail.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useLog } from '../hooks/use-log.ts'
import { useLogFilter } from '../hooks/use-log-filter.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { useOnlyEnvironment, usePhoneFormatter, useShell } from '../hooks/use-shell.ts'
import { parseLogSearch } from '../entry-search.ts'
import { rowsMax, type LogRow, type LogTail } from '../log-tail.ts'
import { linkedRequest, typeSpan } from '../lines/log.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import { justify, type Line, type Span } from '../spans.ts'
import type { Theme } from '../theme.ts'
import { appFilterPicker } from './app-picker.ts'
import { minuteMs } from '../../../src/shared/durations.ts'

/** Screen with the live log. */
export const logsScreen: Screen = {
  title: 'Logs',
  commands: [
    'otpd logs --tail',
    'otpd logs --tail --app web --type otp.failed',
    'otpd logs --since 1h --json',
  ],
  View: LogsView,
}

/** Entries that the screen starts with. */
const backfillMax = 200

function LogsView({ width, height, target }: ScreenProps) {
  const { theme, go, copy, openDialog } = useConsole()
  const { data: applications = [], applicationName, applicationCell } = useApplications()
  const environment = useOnlyEnvironment()
  const { isPaused, isUnmasked } = useShell()
  const formatPhone = usePhoneFormatter()
  const nowMs = useNow()
  const logFilter = useLogFilter(target)
  const [searchText, setSearchText] = usePersistentState('logs search', '')
  const search = parseLogSearch(searchText, applications)
  const tail = useLog({
    ...logFilter.selection,
    ...search,
    environment,
    // A text that the server cannot search for is looked for in more entries.
    limit: searchText !== '' && search === null ? rowsMax : backfillMax,
  })
  const [clearedId, setClearedId] = useState<string | null>(null)
  const [isDetailOpen, setDetailOpen] = useState(false)
  const isSplit = isDetailOpen && height >= logDetailHeight + 6
  const listHeight = height - 2 - (isSplit ? logDetailHeight : 0)
  const list = useList({
    name: 'logs',
    rows: rowsAfter(tail.rows, clearedId),
    height: listHeight,
    isTail: true,
    getRowId: ({ id }) => id,
    getFilterText: (row) => rowText(row, applicationName),
    isServerFiltered: search !== null,
    onFilter: setSearchText,
  })
  const entry = list.selected?.kind === 'entry' ? list.selected.entry : null
  const requestId = linkedRequest(entry)
  useKeys('logs', {
    filter: logFilter.openFilterDialog,
    type: logFilter.nextKind,
    app:
      applications.length === 0
        ? undefined
        : () => openDialog(appFilterPicker(applications, logFilter.setApp)),
    open: entry === null || isDetailOpen ? undefined : () => setDetailOpen(true),
    back: isDetailOpen ? () => setDetailOpen(false) : undefined,
    request: requestId === null ? undefined : () => go('otp', { requestId }),
    copy:
      entry &&
      (isDetailOpen
        ? { run: () => copy(JSON.stringify(entry), 'entry as JSON'), label: 'copy JSON' }
        : { run: () => copy(entry.requestId ?? entry.id, 'id'), label: 'copy id' }),
    clear: () => setClearedId(tail.rows.at(-1)?.id ?? null),
  })

  if (tail.error !== null && tail.rows.length === 0)
    return <LoadingOrError polled={{ data: undefined, error: tail.error }} width={width} height={height} />
  const rowsBelow = list.rows.length - list.offset - list.height
  const columns: Column<LogEntry>[] = [
    { title: 'TIME', width: 11, cell: ({ at }) => recentTime(at, nowMs) },
    { title: 'TYPE', width: 20, cell: (entry) => typeSpan(entry, theme) },
    { title: 'PHONE', width: isUnmasked ? 16 : 12, cell: ({ phone }) => formatPhone(phone) },
    { title: 'APP', width: 8, grow: 1, maxWidth: 32, cell: applicationCell },
    { title: 'DETAIL', width: 8, grow: 2, maxWidth: 48, dropPriority: 2, cell: entryDetail },
    { title: 'REQUEST', width: 30, dropPriority: 3, cell: ({ requestId }) => requestId ?? '' },
  ]
  if (isDetailOpen && !isSplit && entry !== null)
    return <LogDetail entry={entry} width={width} height={height} />
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines
        lines={[stateLine(tail, { isPaused, logFilter, rowsBelow, nowMs, width, theme })]}
        width={width}
      />
      <ListTable
        list={list}
        columns={columns.map(entryColumn)}
        width={width}
        empty={emptyLines(tail, logFilter.isFiltered || search !== null, tail.rows.length > 0)}
        renderLine={(row) => (row.kind === 'gap' ? gapLine(row.text, theme) : null)}
      />
      {isSplit && <LogDetail entry={entry} width={width} height={logDetailHeight} />}
    </Box>
  )
}

/** Makes a column of entries one of the log, whose gaps have no cells. */
const entryColumn = (column: Column<LogEntry>): Column<LogRow> => ({
  ...column,
  cell: (row) => (row.kind === 'gap' ? '' : column.cell(row.entry)),
})

function rowsAfter(rows: readonly LogRow[], clearedId: string | null) {
  const clearedIndex = clearedId === null ? -1 : rows.findIndex(({ id }) => id === clearedId)
  return clearedIndex === -1 ? rows : rows.slice(clearedIndex + 1)
}

const rowText = (row: LogRow, applicationName: (id: string | null) => string) =>
  row.kind === 'gap'
    ? row.text
    : [
        row.entry.type,
        row.entry.phone,
        applicationName(row.entry.appId),
        entryDetail(row.entry),
        row.entry.requestId,
      ].join(' ')

const gapLine = (text: string, { paint, symbols }: Theme): Line => ({
  text: `${symbols.rule.repeat(2)} ${text} ${symbols.rule.repeat(2)}`,
  paint: paint.yellow,
})

const emptyLines = ({ state }: LogTail, isFiltered: boolean, isCleared: boolean): string[] => {
  if (state === 'loading') return ['Loading']
  if (isCleared) return ['Cleared. New events appear here.']
  if (isFiltered) return ['No matching events yet. Press f or / to change the filter.']
  return ['No events yet. Send a code:', '', '  otpd otp send PHONE --env-file FILE']
}

function stateLine(
  { state: tailState, arrivals }: LogTail,
  screen: {
    isPaused: boolean
    logFilter: { summary: string }
    rowsBelow: number
    nowMs: number
    width: number
    theme: Theme
  },
): readonly Span[] {
  const { isPaused, logFilter, rowsBelow, nowMs, width } = screen
  const { paint, symbols, status } = screen.theme
  const perMinute = arrivals.filter((at) => at > nowMs - minuteMs).length
  const states = {
    loading: status('waiting', 'loading'),
    live: status('good', `live  ${perMinute}/min`),
    disconnected: status('bad', 'connection lost, retrying'),
    refused: status('bad', 'refused by the server, retrying'),
  }
  const state = isPaused ? status('warning', 'paused, p resumes') : states[tailState]
  const left: Line = [' ', state, { text: `   ${logFilter.summary}`, paint: paint.dim }]
  return justify(
    left,
    rowsBelow > 0 ? { text: `${symbols.down} ${rowsBelow} more, G to follow `, paint: paint.yellow } : '',
    width,
  )
}
