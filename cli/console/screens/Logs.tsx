import { Box } from 'ink'
import { useState } from 'react'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { LogDetail, logDetailHeight } from '../components/LogDetail.tsx'
import { Waiting } from '../components/Waiting.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useLog } from '../hooks/use-log.ts'
import { useLogNarrowing } from '../hooks/use-log-narrowing.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePhone, useShell } from '../hooks/use-shell.ts'
import type { LogRow, LogTail } from '../log-tail.ts'
import { typeSpan } from '../lines/log.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import { spread, type Line, type Span } from '../spans.ts'
import type { Theme } from '../theme.ts'

/** What happens to codes, as it happens. */
export const logsScreen: Screen = {
  name: 'logs',
  title: 'Logs',
  commands: [
    'otpd logs --tail',
    'otpd logs --tail --app web --type otp.failed',
    'otpd logs --since 1h --json',
  ],
  View: LogsView,
}

function LogsView({ width, height, target }: ScreenProps) {
  const { theme, go, copy } = useConsole()
  const { nameOf } = useApplications()
  const { isPaused, isUnmasked } = useShell()
  const phoneOf = usePhone()
  const nowMs = useNow()
  const narrowing = useLogNarrowing(target)
  const tail = useLog(narrowing.selection)
  const [clearedId, setClearedId] = useState<string | null>(null)
  const [isOpen, setOpen] = useState(false)
  const isSplit = isOpen && height >= logDetailHeight + 6
  const listHeight = height - 2 - (isSplit ? logDetailHeight : 0)
  const list = useList({
    name: 'logs',
    rows: rowsBehind(tail.rows, clearedId),
    height: listHeight,
    isTail: true,
    idOf: ({ id }) => id,
    textOf: (row) => textOfRow(row, nameOf),
  })
  const entry = list.selected?.kind === 'entry' ? list.selected.entry : null
  const requestId = entry?.requestId ?? null
  useKeys('logs', {
    filter: narrowing.ask,
    type: narrowing.nextKind,
    app: narrowing.selection.appId
      ? { run: () => narrowing.setApp(null), label: 'all apps' }
      : entry?.appId
        ? () => narrowing.setApp(entry.appId)
        : undefined,
    open: entry === null || isOpen ? undefined : () => setOpen(true),
    back: isOpen ? () => setOpen(false) : undefined,
    request: requestId === null ? undefined : () => go('otp', { requestId }),
    copy:
      entry === null
        ? undefined
        : isOpen
          ? { run: () => copy(JSON.stringify(entry), 'entry as JSON'), label: 'copy JSON' }
          : { run: () => copy(requestId ?? entry.id, 'id'), label: 'copy id' },
    clear: () => setClearedId(tail.rows.at(-1)?.id ?? null),
  })

  if (tail.error !== null && tail.rows.length === 0)
    return <Waiting live={{ data: undefined, error: tail.error }} width={width} height={height} />
  const below = list.rows.length - list.offset - list.height
  const columns: Column<LogRow>[] = [
    { title: 'TIME', width: 11, cell: (row) => (row.kind === 'gap' ? '' : recentTime(row.entry.at, nowMs)) },
    { title: 'TYPE', width: 20, cell: (row) => (row.kind === 'gap' ? '' : typeSpan(row.entry, theme)) },
    {
      title: 'PHONE',
      width: isUnmasked ? 16 : 12,
      cell: (row) => (row.kind === 'gap' ? '' : phoneOf(row.entry.phone)),
    },
    {
      title: 'APP',
      width: 8,
      grow: 1,
      widest: 32,
      cell: (row) => (row.kind === 'gap' ? '' : nameOf(row.entry.appId)),
    },
    {
      title: 'DETAIL',
      width: 8,
      grow: 2,
      widest: 48,
      spare: 2,
      cell: (row) => (row.kind === 'gap' ? '' : (row.entry.detail ?? '')),
    },
    {
      title: 'REQUEST',
      width: 30,
      spare: 3,
      cell: (row) => (row.kind === 'gap' ? '' : (row.entry.requestId ?? '')),
    },
  ]
  if (isOpen && !isSplit && entry !== null) return <LogDetail entry={entry} width={width} height={height} />
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={[stateLine(tail, nowMs, isPaused, narrowing.words, below, width, theme)]} width={width} />
      <ListTable
        list={list}
        columns={columns}
        width={width}
        empty={emptyLines(tail, narrowing.isNarrow, tail.rows.length > 0)}
        lineOf={(row) => (row.kind === 'gap' ? gapLine(row.text, theme) : null)}
      />
      {isSplit && <LogDetail entry={entry} width={width} height={logDetailHeight} />}
    </Box>
  )
}

function rowsBehind(rows: readonly LogRow[], clearedId: string | null) {
  const at = clearedId === null ? -1 : rows.findIndex(({ id }) => id === clearedId)
  return at === -1 ? rows : rows.slice(at + 1)
}

const textOfRow = (row: LogRow, nameOf: (id: string | null) => string) =>
  row.kind === 'gap'
    ? row.text
    : [row.entry.type, row.entry.phone, nameOf(row.entry.appId), row.entry.detail, row.entry.requestId].join(
        ' ',
      )

const gapLine = (text: string, { paint, symbols }: Theme): Line => ({
  text: `${symbols.rule.repeat(2)} ${text} ${symbols.rule.repeat(2)}`,
  paint: paint.yellow,
})

const emptyLines = ({ state }: LogTail, isNarrow: boolean, isCleared: boolean): string[] => {
  if (state === 'loading') return ['Loading']
  if (isCleared) return ['What comes from now on is shown here.']
  if (isNarrow) return ['No such events yet. Narrow it differently with f.']
  return ['No events yet. Send a code:', '', '  otpd otp send PHONE --env-file FILE']
}

function stateLine(
  { state: tailState, arrivals }: LogTail,
  nowMs: number,
  isPaused: boolean,
  words: string,
  below: number,
  width: number,
  theme: Theme,
): readonly Span[] {
  const { paint, symbols, status } = theme
  const perMinute = arrivals.filter((at) => at > nowMs - 60_000).length
  const states = {
    loading: status('waiting', 'loading'),
    live: status('good', `live  ${perMinute}/min`),
    lost: status('bad', 'connection lost, trying again'),
    refused: status('bad', 'refused by the server, trying again'),
  }
  const state = isPaused ? status('warning', 'paused, p goes on') : states[tailState]
  const left: Line = [' ', state, { text: `   ${words}`, paint: paint.dim }]
  return spread(
    left,
    below > 0 ? { text: `${symbols.down} ${below} more, G follows `, paint: paint.yellow } : '',
    width,
  )
}
