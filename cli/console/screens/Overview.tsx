import { Box } from 'ink'
import { Lines } from '../components/Lines.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { useResource } from '../hooks/use-resource.ts'
import { useProjects } from '../hooks/use-projects.ts'
import { useOnlyEnvironment } from '../hooks/use-shell.ts'
import { failureTypes } from '../../../src/shared/event-kinds.ts'
import { barChart } from '../lines/chart.ts'
import {
  chartLines,
  countLines,
  firstStepLines,
  nextRange,
  overviewCharts,
  rangeSpans,
  type Range,
} from '../lines/overview.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import type { Line } from '../spans.ts'
import { appFilterPicker } from './app-picker.ts'
import { Failures, OverviewPanels } from './OverviewPanels.tsx'
import { useWebhookHealth } from './use-webhook-health.ts'

/** Screen with the account's counts, charts of the last days, and what needs attention. */
export const overviewScreen: Screen = {
  title: 'Overview',
  commands: [
    'otpd analytics --range 30d',
    'otpd analytics summary --json',
    `otpd logs --type ${failureTypes.join(',')}`,
  ],
  View: OverviewView,
}

/** From here on there is room for panels side by side. */
const wideMin = 120
/** From here on there is also room for charts with axes. */
const tallMin = 30

function OverviewView(props: ScreenProps) {
  const { theme, openDialog } = useConsole()
  const { width, height, isCompact } = props
  const environment = useOnlyEnvironment()
  const { data: applications = [], applicationName } = useApplications()
  const [range, setRange] = usePersistentState<Range>('overview range', '30d')
  const [appId, setAppId] = usePersistentState<string | null>('overview app', null)
  const summary = useResource('/v1/analytics/summary', { query: { environment } })
  const days = useResource('/v1/analytics/timeseries', { query: { range, environment, appId } })
  const webhooks = useWebhookHealth()
  useKeys('overview', {
    app: applications.length === 0 ? undefined : () => openDialog(appFilterPicker(applications, setAppId)),
    range: () => setRange(nextRange(range)),
    webhook: webhooks.openFailing,
  })
  if (summary.data === undefined || days.data === undefined)
    return (
      <LoadingOrError polled={summary.data === undefined ? summary : days} width={width} height={height} />
    )

  const isEmpty = summary.data.otpRequests === 0
  const isWide = width >= wideMin && !isEmpty
  const app = appId === null ? '' : `   app: ${applicationName(appId)}`
  const { failingLine } = webhooks
  if (isWide && height >= tallMin) {
    const charts = overviewCharts(days.data, theme)
    const chartHeight = Math.floor((height - 5) / 4)
    const head: Line[] = [
      '',
      ...countLines(summary.data, width, theme),
      '',
      [' ', ...rangeSpans(range, theme.paint), { text: app, paint: theme.paint.cyan }],
    ]
    const half = Math.floor((width - 2) / 2)
    return (
      <Box flexDirection="column" width={width} height={height}>
        <Lines lines={head} width={width} />
        {[charts.slice(0, 2), charts.slice(2)].map((pair, row) => (
          <Box key={row} flexDirection="row" width={width} height={chartHeight} flexShrink={0}>
            {pair.map((chart) => (
              <Lines
                key={chart.title}
                lines={barChart(chart, half, chartHeight, theme)}
                width={half + 1}
                height={chartHeight}
              />
            ))}
          </Box>
        ))}
        <OverviewPanels
          endpoints={webhooks.endpoints}
          range={range}
          width={width}
          height={height - head.length - 2 * chartHeight}
        />
      </Box>
    )
  }

  const blankLine = isCompact ? [] : ['']
  const top: Line[] = [
    ...blankLine,
    ...countLines(summary.data, width, theme),
    ...(isCompact && failingLine ? [] : ['']),
    ...(isEmpty && isCompact ? [] : chartLines(days.data, range, width, theme)),
    ...(failingLine ? [...blankLine, failingLine] : []),
    ...blankLine,
  ]
  const size = { width, height: height - top.length }
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={top} width={width} />
      {isEmpty ? (
        <FirstSteps {...size} />
      ) : isWide ? (
        <OverviewPanels {...size} endpoints={webhooks.endpoints} range={range} />
      ) : (
        <Failures {...size} />
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
