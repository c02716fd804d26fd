import { Box } from 'ink'
import { logoText } from '../../client/logo-file.ts'
import type { ApplicationPage, LogEntry } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { Rule } from '../components/Rule.tsx'
import { useConsole } from '../console-context.ts'
import { useApplicationCalls } from '../hooks/use-application-calls.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { useResource } from '../hooks/use-resource.ts'
import { usePhoneFormatter } from '../hooks/use-shell.ts'
import { factLines } from '../lines/facts.ts'
import type { Line } from '../spans.ts'
import type { Theme } from '../theme.ts'
import type { TabProps } from './app-tab.ts'
import { linkDialog } from './page-dialog.ts'

const empty = ['No phone was verified on the page in the time that the log keeps.']

/** Tab with the ready page of the application: its settings, and the sessions that verified a phone. */
export function AppPage({ app, keys, width, height }: TabProps) {
  const console = useConsole()
  const { theme, copy, go, openDialog } = console
  const nowMs = useNow()
  const formatPhone = usePhoneFormatter()
  const callAsApplication = useApplicationCalls()
  const appId = app.id
  const page = useResource('/v1/applications/:id/page', { params: { id: appId } })
  const sessions = useResource('/v1/logs', { query: { appId, type: 'session.verified', limit: '100' } })
  const facts = page.data ? pageLines(page.data, theme) : []
  const list = useList<LogEntry>({
    name: `app ${appId} sessions`,
    rows: sessions.data?.toReversed() ?? [],
    height: height - facts.length - 2,
    getRowId: ({ id }) => id,
    getFilterText: ({ phone, detail }) => [phone, detail].join(' '),
  })
  const { requestId = null, detail: sessionId = null } = list.selected ?? {}
  const [origin] = page.data?.returnOrigins ?? []
  const makeLink = () =>
    callAsApplication(app, (credentials) => openDialog(linkDialog(console, app, credentials, origin)))
  useKeys('apps', {
    ...keys,
    link: page.data?.enabled ? makeLink : { unavailable: 'the page is off; P sets it up' },
    open: requestId === null ? undefined : { run: () => go('otp', { requestId }), label: 'open request' },
    copy: sessionId === null ? undefined : { run: () => copy(sessionId, 'session id'), label: 'copy id' },
  })
  if (page.data === undefined) return <LoadingOrError polled={page} width={width} height={height} />
  if (sessions.data === undefined) return <LoadingOrError polled={sessions} width={width} height={height} />
  const columns: Column<LogEntry>[] = [
    { title: 'TIME', width: 11, cell: ({ at }) => recentTime(at, nowMs) },
    { title: 'PHONE', width: 16, cell: ({ phone }) => formatPhone(phone) },
    { title: 'SESSION', width: 30, grow: 1, cell: ({ detail }) => detail ?? '' },
  ]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={facts} width={width} />
      <Rule width={width} title="Verified on the page" />
      <ListTable list={list} columns={columns} width={width} empty={empty} />
    </Box>
  )
}

function pageLines({ enabled, returnOrigins, name, colour, logo }: ApplicationPage, theme: Theme): Line[] {
  const none = { text: 'none', paint: theme.paint.dim }
  return factLines(
    [
      ['page', theme.status(enabled ? 'good' : 'off', enabled ? 'on' : 'off')],
      ['returns to', returnOrigins.length === 0 ? none : returnOrigins.join(' ')],
      ['name', name ?? { text: 'that of the application', paint: theme.paint.dim }],
      ['colour', colour ?? none],
      ['logo', logo === null ? none : logoText(logo)],
    ],
    theme,
  )
}
