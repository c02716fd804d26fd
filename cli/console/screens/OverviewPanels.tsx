import { Box } from 'ink'
import type { BreakdownRow, LogEntry, ProviderState, WebhookEndpoint } from '../../client/resources.ts'
import { recentTime, relativeTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { PanelTable } from '../components/PanelTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useBreakdown } from '../hooks/use-breakdown.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { useResource } from '../hooks/use-resource.ts'
import { useProviders } from '../hooks/use-providers.ts'
import { useOnlyEnvironment, usePhoneFormatter } from '../hooks/use-shell.ts'
import { circuitSpan, countColumns } from '../lines/breakdown.ts'
import { failureTypes } from '../../../src/shared/event-kinds.ts'
import { eventText, linkedRequest } from '../lines/log.ts'
import type { Range } from '../lines/overview.ts'
import { endpointStatus } from '../lines/webhook.ts'

type Size = { width: number; height: number }

/** Height of a panel with one row, its title and its heading. */
const panelMin = 5

/** Side by side: applications, countries and providers, and below them webhooks and failures. */
export function OverviewPanels({
  endpoints,
  range,
  width,
  height,
}: Size & { endpoints: readonly WebhookEndpoint[] | undefined; range: Range }) {
  const { theme } = useConsole()
  const nowMs = useNow()
  const { applicationName } = useApplications()
  const byApplication = useBreakdown('application', range)
  const byCountry = useBreakdown('country', range)
  const byProvider = useBreakdown('provider', range)
  const providers = useProviders()
  const hasTwoRows = height >= 2 * panelMin
  const upper = hasTwoRows ? Math.floor(height / 2) : 0
  const lower = height - upper
  const third = Math.floor((width - 4) / 3)
  const left = Math.floor((width - 2) * 0.4)
  return (
    <Box flexDirection="column" width={width} height={height}>
      {hasTwoRows && (
        <Box flexDirection="row" columnGap={2} width={width} height={upper} flexShrink={0}>
          <PanelTable
            title="Applications"
            rows={byApplication.data}
            columns={[
              { title: 'NAME', width: 16, grow: 1, cell: ({ name, key }) => name ?? key ?? '-' },
              ...countColumns<BreakdownRow>((row) => row),
            ]}
            empty="No codes in these days."
            width={third}
            height={upper}
          />
          <PanelTable
            title="Countries"
            rows={byCountry.data}
            columns={[
              { title: 'COUNTRY', width: 16, grow: 1, cell: countryText },
              ...countColumns<BreakdownRow>((row) => row),
            ]}
            empty="No codes in these days."
            width={third}
            height={upper}
          />
          <PanelTable
            title="Providers"
            rows={providers.data}
            columns={[
              { title: 'NAME', width: 8, grow: 1, cell: ({ name }) => name },
              {
                title: 'STATE',
                width: 9,
                grow: 1,
                maxWidth: 26,
                cell: (row) => circuitSpan(row, theme, nowMs),
              },
              ...countColumns<ProviderState>(({ name }) =>
                byProvider.data?.find(({ key }) => key === name),
              ).filter(({ title }) => title !== 'FAILED'),
            ]}
            empty="No provider is configured: codes stay in the inbox."
            width={width - 2 * third - 4}
            height={upper}
          />
        </Box>
      )}
      <Box flexDirection="row" columnGap={2} width={width} height={lower} flexShrink={0}>
        <PanelTable
          title="Webhooks"
          rows={endpoints}
          columns={[
            { title: 'STATUS', width: 10, cell: (endpoint) => endpointStatus(endpoint, theme) },
            { title: 'URL', width: 16, grow: 3, cell: ({ url }) => url.replace(/^https?:\/\//, '') },
            { title: 'APP', width: 8, grow: 1, dropPriority: 1, cell: ({ appId }) => applicationName(appId) },
            {
              title: 'FAILING',
              width: 11,
              dropPriority: 2,
              cell: ({ failingSince }) => (failingSince === null ? '-' : relativeTime(failingSince, nowMs)),
            },
          ]}
          empty="No webhooks."
          width={left}
          height={lower}
        />
        <Failures width={width - left - 2} height={lower} />
      </Box>
    </Box>
  )
}

const countryText = ({ key, name }: BreakdownRow) =>
  key === null ? 'unknown' : name === null || name === key ? key : `${key}  ${name}`

/** List of the newest failures. Each opens its request. */
export function Failures({ width, height }: Size) {
  const { go } = useConsole()
  const { applicationCell } = useApplications()
  const formatPhone = usePhoneFormatter()
  const nowMs = useNow()
  const environment = useOnlyEnvironment()
  const query = { type: failureTypes.join(','), limit: '50', order: 'desc', environment } as const
  const failures = useResource('/v1/logs', { query })
  const list = useList({
    name: 'overview failures',
    rows: failures.data ?? [],
    height: height - 2,
    getRowId: ({ id }) => id,
  })
  const { selected } = list
  const requestId = linkedRequest(selected)
  useKeys('overview', {
    open: requestId === null ? undefined : { run: () => go('otp', { requestId }), label: 'open request' },
  })
  const columns: Column<LogEntry>[] = [
    { title: 'TIME', width: 11, cell: ({ at }) => recentTime(at, nowMs) },
    { title: 'PHONE', width: 16, cell: ({ phone }) => formatPhone(phone) },
    { title: 'EVENT', width: 24, grow: 1, maxWidth: 48, cell: eventText },
    { title: 'APP', width: 10, grow: 1, maxWidth: 40, dropPriority: 1, cell: applicationCell },
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
