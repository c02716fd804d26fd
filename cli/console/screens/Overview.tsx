import { Box } from 'ink'
import type { LogEntry } from '../../client/resources.ts'
import { recentTime, relativeTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { usePolled } from '../hooks/use-polled.ts'
import { useNow } from '../hooks/use-now.ts'
import { useProjects } from '../hooks/use-projects.ts'
import { usePhoneFormatter } from '../hooks/use-shell.ts'
import { eventText, failureTypes } from '../lines/log.ts'
import { chartLines, countLines, firstStepLines, ranges, type Range } from '../lines/overview.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import type { Line } from '../spans.ts'

/** Screen with the account's counts, a chart of the last days, and recent failures. */
export const overviewScreen: Screen = {
  title: 'Overview',
  commands: [
    'otpd analytics --range 30d',
    'otpd analytics summary --json',
    `otpd logs --type ${failureTypes.join(',')}`,
  ],
  View: OverviewView,
}

function OverviewView(props: ScreenProps) {
  const { api, theme } = useConsole()
  const { width, height, isCompact } = props
  const [range, setRange] = usePersistentState<Range>('overview range', '30d')
  const summary = usePolled(
    'summary',
    async () => (await api.asDeveloper('GET', '/v1/analytics/summary')).data,
  )
  const days = usePolled(`days ${range}`, async () => {
    const { data } = await api.asDeveloper('GET', '/v1/analytics/timeseries', { query: { range } })
    return data
  })
  const webhook = useFailingWebhook()
  useKeys('overview', {
    range: () => setRange(ranges[(ranges.indexOf(range) + 1) % ranges.length] ?? '30d'),
    webhook: webhook?.open,
  })
  if (summary.data === undefined || days.data === undefined)
    return (
      <LoadingOrError polled={summary.data === undefined ? summary : days} width={width} height={height} />
    )

  const blankLine = isCompact ? [] : ['']
  const isEmpty = summary.data.otpRequests === 0
  const top: Line[] = [
    ...blankLine,
    ...countLines(summary.data, width, theme),
    ...(isCompact && webhook ? [] : ['']),
    ...(isEmpty && isCompact ? [] : chartLines(days.data, range, width, theme)),
    ...(webhook ? [...blankLine, webhook.line] : []),
    ...blankLine,
  ]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={top} width={width} />
      {isEmpty ? (
        <FirstSteps width={width} height={height - top.length} />
      ) : (
        <Failures width={width} height={height - top.length} />
      )}
    </Box>
  )
}

function FirstSteps({ width, height }: { width: number; height: number }) {
  const { theme } = useConsole()
  const { data: applications = [] } = useApplications()
  const { data: projects = [] } = useProjects()
  const lines = firstStepLines(projects.length > 0, applications.length > 0, width, theme)
  return <Lines lines={lines} width={width} height={height} />
}

function Failures({ width, height }: { width: number; height: number }) {
  const { api, go } = useConsole()
  const { applicationName } = useApplications()
  const formatPhone = usePhoneFormatter()
  const nowMs = useNow()
  const load = async () => {
    const query = { type: failureTypes.join(','), limit: '50', order: 'desc' } as const
    return (await api.asDeveloper('GET', '/v1/logs', { query })).data
  }
  const failures = usePolled('failures', load)
  const list = useList({
    name: 'overview failures',
    rows: failures.data ?? [],
    height: height - 2,
    getRowId: ({ id }) => id,
  })
  const { selected } = list
  const requestId = selected?.requestId ?? null
  useKeys('overview', {
    open: requestId === null ? undefined : { run: () => go('otp', { requestId }), label: 'open request' },
  })
  const columns: Column<LogEntry>[] = [
    { title: 'TIME', width: 11, cell: ({ at }) => recentTime(at, nowMs) },
    { title: 'PHONE', width: 16, cell: ({ phone }) => formatPhone(phone) },
    { title: 'EVENT', width: 16, grow: 1, maxWidth: 48, cell: eventText },
    { title: 'APP', width: 16, dropPriority: 1, cell: ({ appId }) => applicationName(appId) },
  ]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Rule width={width} title="Recent failures" />
      {failures.data === undefined ? (
        <LoadingOrError polled={failures} width={width} height={height - 1} />
      ) : (
        <ListTable list={list} columns={columns} width={width} empty={['No failures.']} />
      )}
    </Box>
  )
}

/** Returns a line about the endpoint that has been failing longest, and an action that opens it. */
function useFailingWebhook() {
  const { api, go, theme } = useConsole()
  const { applicationName } = useApplications()
  const nowMs = useNow()
  const webhooks = usePolled(
    'webhooks failing',
    async () => {
      const { data } = await api.asDeveloper('GET', '/v1/webhooks', { query: { limit: '200' } })
      return data
        .flatMap(({ id, appId, url, failingSince }) =>
          failingSince === null ? [] : [{ id, appId, url, failingSince }],
        )
        .toSorted((a, b) => a.failingSince.localeCompare(b.failingSince))
    },
    { intervalMs: 10_000 },
  )
  const [endpoint, ...others] = webhooks.data ?? []
  if (endpoint === undefined) return null
  const moreText = others.length === 0 ? '' : `, and ${others.length} more`
  const line: Line = [
    ' ',
    theme.status('warning', `webhook of ${applicationName(endpoint.appId)} is failing`),
    `, first failure ${relativeTime(endpoint.failingSince, nowMs)}${moreText}: ${endpoint.url}`,
  ]
  return { line, open: () => go('webhooks', { webhookId: endpoint.id }) }
}
