import { reasonWords } from '../../client/log-lines.ts'
import type { LogEntry } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useResource } from '../hooks/use-resource.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePhoneFormatter } from '../hooks/use-shell.ts'
import { typeSpan, linkedRequest } from '../lines/log.ts'
import type { TabProps } from './app-tab.ts'

const empty = ['No activity yet. Press S to send a code; or:', '', '  otpd otp send PHONE --env-file FILE']

/** Tab with the application's log, newest first. */
export function AppActivity({ app, keys, width, height }: TabProps) {
  const { theme, copy, go } = useConsole()
  const nowMs = useNow()
  const formatPhone = usePhoneFormatter()
  const appId = app.id
  const log = useResource('/v1/logs', { query: { appId, limit: '100' } })
  const list = useList<LogEntry>({
    name: `app ${appId} log`,
    rows: log.data?.toReversed() ?? [],
    height: height - 1,
    getRowId: ({ id }) => id,
    getFilterText: ({ type, phone, detail, requestId }) => [type, phone, detail, requestId].join(' '),
  })
  const requestId = linkedRequest(list.selected)
  useKeys('apps', {
    ...keys,
    open: requestId === null ? undefined : { run: () => go('otp', { requestId }), label: 'open request' },
    logs: () => go('logs', { appId }),
    copy: requestId === null ? undefined : { run: () => copy(requestId, 'request id'), label: 'copy id' },
  })
  if (log.data === undefined) return <LoadingOrError polled={log} width={width} height={height} />
  const columns: Column<LogEntry>[] = [
    { title: 'TIME', width: 11, cell: ({ at }) => recentTime(at, nowMs) },
    { title: 'TYPE', width: 20, cell: (entry) => typeSpan(entry, theme) },
    { title: 'PHONE', width: 16, cell: ({ phone }) => formatPhone(phone) },
    {
      title: 'DETAIL',
      width: 12,
      grow: 1,
      maxWidth: 48,
      dropPriority: 1,
      cell: ({ detail }) => reasonWords(detail ?? ''),
    },
    { title: 'REQUEST', width: 30, dropPriority: 2, cell: (entry) => entry.requestId ?? '' },
  ]
  return <ListTable list={list} columns={columns} width={width} empty={empty} />
}
