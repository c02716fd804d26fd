import { Box } from 'ink'
import type { WebhookDelivery, WebhookEndpoint } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import { resultText } from '../../client/webhook-text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useResource } from '../hooks/use-resource.ts'
import { useNow } from '../hooks/use-now.ts'
import { nextAttemptText } from '../lines/webhook.ts'
import { statusSpan } from '../theme.ts'
import { redeliverDialog } from './webhook-dialogs.ts'

type Props = {
  endpoint: WebhookEndpoint
  isActive: boolean
  width: number
  height: number
  open(deliveryId: string): void
  onBack(): void
}

/** List of the newest deliveries to an endpoint. */
export function WebhookDeliveries({ endpoint, isActive, width, height, open, onBack }: Props) {
  const console = useConsole()
  const { theme, openDialog, copy } = console
  const nowMs = useNow()
  const [onlyFailed, setOnlyFailed] = usePersistentState('webhooks only failed', false)
  const deliveries = useResource('/v1/webhooks/:id/deliveries', {
    params: { id: endpoint.id },
    query: { limit: '200', status: onlyFailed ? 'failed' : null },
  })
  const list = useList({
    name: `deliveries ${endpoint.id}`,
    rows: deliveries.data ?? [],
    height: height - 2,
    getRowId: ({ id }) => id,
    getFilterText: (delivery) => `${delivery.type} ${delivery.status} ${delivery.id} ${delivery.eventId}`,
    isActive,
  })
  const { selected } = list
  useKeys('detail', { back: onBack }, { isActive })
  useKeys(
    'webhooks',
    {
      open: selected && (() => open(selected.id)),
      redeliver: selected && (() => openDialog(redeliverDialog(console, endpoint.id, selected))),
      failures: { run: () => setOnlyFailed(!onlyFailed), label: onlyFailed ? 'all' : 'failures' },
      copy: selected && (() => copy(selected.id, 'delivery id')),
    },
    { isActive },
  )
  const columns: Column<WebhookDelivery>[] = [
    { title: 'CREATED', width: 11, cell: ({ createdAt }) => recentTime(createdAt, nowMs) },
    { title: 'EVENT', width: 15, cell: ({ type }) => type },
    { title: 'STATUS', width: 11, cell: (delivery) => statusSpan(delivery, theme) },
    { title: 'TRIES', width: 5, align: 'right', cell: ({ attempts }) => String(attempts) },
    {
      title: 'RESULT',
      width: 7,
      grow: 1,
      maxWidth: 15,
      cell: (delivery) => resultText(delivery.lastStatusCode, delivery.lastError),
    },
    { title: 'RETRY', width: 14, dropPriority: 1, cell: (delivery) => nextAttemptText(delivery, nowMs) },
    { title: 'DELIVERY', width: 30, dropPriority: 2, cell: ({ id }) => id },
  ]
  const title = [
    { text: onlyFailed ? 'Failed deliveries' : 'Deliveries', paint: isActive ? theme.paint.bold : undefined },
    ` to ${endpoint.url}`,
  ]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Rule width={width} title={title} />
      {deliveries.data === undefined ? (
        <LoadingOrError polled={deliveries} width={width} height={height - 1} />
      ) : (
        <ListTable
          list={list}
          columns={columns}
          width={width}
          empty={onlyFailed ? emptyFailedText : emptyText}
        />
      )}
    </Box>
  )
}

const emptyText = ['No deliveries yet. Send a code, or press T to send a test event.']
const emptyFailedText = ['No failed deliveries. Press f to show all.']
