import { Box } from 'ink'
import { useState } from 'react'
import type { WebhookEndpoint } from '../../client/resources.ts'
import { eventsText } from '../../terminal/webhook-text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { Waiting } from '../components/Waiting.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKept } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useLive } from '../hooks/use-polled.ts'
import { useWanted } from '../hooks/use-pending-selection.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import { endpointStatus } from '../lines/webhook.ts'
import { createDialog, editDialog, removeDialog, testDialog, toggleDialog } from './webhook-dialogs.ts'
import { WebhookDeliveries } from './WebhookDeliveries.tsx'
import { WebhookDeliveryDetail } from './WebhookDeliveryDetail.tsx'

/** Where events are sent, and what became of them. */
export const webhooksScreen: Screen = {
  name: 'webhooks',
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

type Open = { webhookId: string; deliveryId: string }

function WebhooksView(props: ScreenProps) {
  const [open, setOpen] = useState<Open | null>(null)
  return open === null ? (
    <Endpoints {...props} open={setOpen} />
  ) : (
    <WebhookDeliveryDetail {...props} {...open} close={() => setOpen(null)} />
  )
}

/** Endpoints above, the deliveries of the selected one below; where there is little room, one of the two. */
function Endpoints({ width, height, isCompact, target, open }: ScreenProps & { open(open: Open): void }) {
  const { api, theme, ask, copy, toast } = useConsole()
  const { data: applications = [], nameOf } = useApplications()
  const [pane, setPane] = useKept<'endpoints' | 'deliveries'>('webhooks pane', 'endpoints')
  const isAbove = pane === 'endpoints'
  const webhooks = useLive('webhooks', async () => {
    const { data } = await api.asDeveloper('GET', '/v1/webhooks', { query: { limit: '200' } })
    return data
  })
  const rows = webhooks.data ?? []
  const isSplit = !isCompact && rows.length > 0
  const aboveHeight = isSplit ? Math.min(Math.floor(height / 2), rows.length + 3) : height
  const list = useList({
    name: 'webhooks',
    rows,
    height: aboveHeight - 1,
    idOf: ({ id }) => id,
    textOf: (one) => `${one.url} ${nameOf(one.appId)} ${eventsText(one)} ${one.description ?? ''}`,
    isActive: isAbove,
  })
  const { selected } = list
  const want = useWanted('webhook', list, target?.webhookId)
  const needs = { api, toast }
  const onSelected = (act: (endpoint: WebhookEndpoint) => void) =>
    selected === null ? undefined : () => act(selected)
  const appName = selected === null ? (applications[0]?.name ?? '') : nameOf(selected.appId)
  useKeys(
    'webhooks',
    {
      open: onSelected(() => setPane('deliveries')),
      create:
        applications.length === 0
          ? { unavailable: 'there is no application yet' }
          : () => ask(createDialog(needs, appName, want)),
      edit: onSelected((endpoint) => ask(editDialog(needs, endpoint))),
      test: onSelected((endpoint) => ask(testDialog(needs, endpoint))),
      toggle:
        selected === null
          ? undefined
          : {
              run: () => ask(toggleDialog(needs, selected)),
              label: selected.status === 'enabled' ? 'disable' : 'enable',
            },
      remove: onSelected((endpoint) => ask(removeDialog(needs, endpoint))),
      copy: onSelected(({ id }) => copy(id, 'webhook id')),
    },
    { isActive: isAbove },
  )
  useKeys('detail', { nextPane: isSplit ? () => setPane(isAbove ? 'deliveries' : 'endpoints') : undefined })
  if (webhooks.data === undefined) return <Waiting live={webhooks} width={width} height={height} />

  const columns: Column<WebhookEndpoint>[] = [
    { title: 'URL', width: 24, grow: 3, cell: ({ url }) => url },
    { title: 'APP', width: 8, grow: 1, spare: 1, cell: ({ appId }) => nameOf(appId) },
    { title: 'EVENTS', width: 14, grow: 1, spare: 2, cell: eventsText },
    { title: 'STATUS', width: 12, cell: (one) => endpointStatus(one, theme) },
  ]
  const belowHeight = isSplit ? height - aboveHeight : height
  return (
    <Box flexDirection="column" width={width} height={height}>
      {(isSplit || isAbove || selected === null) && (
        <ListTable list={list} columns={columns} width={width} empty={empty(applications.length > 0)} />
      )}
      {(isSplit || !isAbove) && selected !== null && (
        <WebhookDeliveries
          key={selected.id}
          endpoint={selected}
          isActive={!isAbove}
          width={width}
          height={belowHeight}
          open={(deliveryId) => open({ webhookId: selected.id, deliveryId })}
          back={() => setPane('endpoints')}
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
        'n has the events of an application sent to a URL; or:',
        '',
        '  otpd webhook create --app APP --url URL --events otp.verified',
      ]
    : ['Events are of an application, and there is none: 2 opens Apps.']),
]
