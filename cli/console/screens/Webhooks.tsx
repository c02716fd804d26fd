import { Box } from 'ink'
import { useState } from 'react'
import type { WebhookEndpoint } from '../../client/resources.ts'
import { eventsText } from '../../client/webhook-text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications, useRowsShown } from '../hooks/use-applications.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useResource } from '../hooks/use-resource.ts'
import { usePendingSelection } from '../hooks/use-pending-selection.ts'
import { screenDigit } from '../keymap.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import { endpointStatus } from '../lines/webhook.ts'
import { createDialog, editDialog, removeDialog, testDialog, toggleDialog } from './webhook-dialogs.ts'
import { WebhookDeliveries } from './WebhookDeliveries.tsx'
import { WebhookDeliveryDetail } from './WebhookDeliveryDetail.tsx'

/** Screen with the webhook endpoints and their deliveries. */
export const webhooksScreen: Screen = {
  title: 'Webhooks',
  commands: [
    'otpd webhook list',
    'otpd webhook create --app APP --url URL --events otp.verified',
    'otpd webhook test WEBHOOK',
    'otpd webhook deliveries WEBHOOK --status failed',
    'otpd webhook redeliver WEBHOOK DELIVERY',
  ],
  View: WebhooksView,
}

type OpenDelivery = { webhookId: string; deliveryId: string }

function WebhooksView(props: ScreenProps) {
  const [openDelivery, setOpenDelivery] = useState<OpenDelivery | null>(null)
  return openDelivery === null ? (
    <Endpoints {...props} open={setOpenDelivery} />
  ) : (
    <WebhookDeliveryDetail {...props} {...openDelivery} close={() => setOpenDelivery(null)} />
  )
}

/** Shows endpoints above and the selected one's deliveries below; in a small terminal, one of the two. */
function Endpoints({
  width,
  height,
  isCompact,
  target,
  open,
}: ScreenProps & { open(open: OpenDelivery): void }) {
  const console = useConsole()
  const { theme, openDialog, copy } = console
  const { data: applications, applicationName, applicationCell } = useApplications()
  const [pane, setPane] = usePersistentState<'endpoints' | 'deliveries'>('webhooks pane', 'endpoints')
  const isEndpointsPane = pane === 'endpoints'
  const webhooks = useRowsShown(useResource('/v1/webhooks', { query: { limit: '200' } }))
  const rows = webhooks.data ?? []
  const isSplit = !isCompact && rows.length > 0
  const endpointsHeight = isSplit ? Math.min(Math.floor(height / 2), rows.length + 3) : height
  const list = useList({
    name: 'webhooks',
    rows,
    height: endpointsHeight - 1,
    getRowId: ({ id }) => id,
    getFilterText: (endpoint) =>
      `${endpoint.url} ${applicationName(endpoint.appId)} ${eventsText(endpoint)} ${endpoint.description ?? ''}`,
    isActive: isEndpointsPane,
  })
  const { selected } = list
  const selectWebhook = usePendingSelection('webhook', list, target?.webhookId)
  const appName = selected === null ? (applications?.[0]?.name ?? '') : applicationName(selected.appId)
  useKeys(
    'webhooks',
    {
      open: selected && (() => setPane('deliveries')),
      create:
        applications?.length === 0
          ? { unavailable: 'there is no application yet' }
          : applications && (() => openDialog(createDialog(console, appName, selectWebhook))),
      edit: selected && (() => openDialog(editDialog(console, selected))),
      test: selected && (() => openDialog(testDialog(console, selected))),
      toggle: selected && {
        run: () => openDialog(toggleDialog(console, selected)),
        label: selected.status === 'enabled' ? 'disable' : 'enable',
      },
      remove: selected && (() => openDialog(removeDialog(console, selected))),
      copy: selected && (() => copy(selected.id, 'webhook id')),
    },
    { isActive: isEndpointsPane },
  )
  useKeys('detail', {
    nextPane: isSplit && isEndpointsPane ? () => setPane('deliveries') : undefined,
    previousPane: isSplit && !isEndpointsPane ? () => setPane('endpoints') : undefined,
  })
  if (webhooks.data === undefined) return <LoadingOrError polled={webhooks} width={width} height={height} />

  const columns: Column<WebhookEndpoint>[] = [
    { title: 'URL', width: 24, grow: 3, cell: ({ url }) => url },
    { title: 'APP', width: 8, grow: 1, dropPriority: 1, cell: applicationCell },
    { title: 'EVENTS', width: 14, grow: 1, dropPriority: 2, cell: eventsText },
    { title: 'STATUS', width: 12, cell: (endpoint) => endpointStatus(endpoint, theme) },
  ]
  const deliveriesHeight = isSplit ? height - endpointsHeight : height
  return (
    <Box flexDirection="column" width={width} height={height}>
      {(isSplit || isEndpointsPane || selected === null) && (
        <ListTable list={list} columns={columns} width={width} empty={empty(applications?.length !== 0)} />
      )}
      {(isSplit || !isEndpointsPane) && selected !== null && (
        <WebhookDeliveries
          key={selected.id}
          endpoint={selected}
          isActive={!isEndpointsPane}
          width={width}
          height={deliveriesHeight}
          open={(deliveryId) => open({ webhookId: selected.id, deliveryId })}
          onBack={() => setPane('endpoints')}
        />
      )}
    </Box>
  )
}

const empty = (hasApplications: boolean) => [
  'No webhooks yet.',
  '',
  ...(hasApplications
    ? [
        "Press n to send an application's events to a URL; or:",
        '',
        '  otpd webhook create --app APP --url URL --events otp.verified',
      ]
    : [`Create an application first: ${screenDigit('apps')} opens Apps.`]),
]
