import { Box } from 'ink'
import type { WebhookDelivery, WebhookEndpoint } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import { resultText } from '../../terminal/webhook-text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { Waiting } from '../components/Waiting.tsx'
import { useConsole } from '../console-context.ts'
import { useKept } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useLive } from '../hooks/use-polled.ts'
import { useNow } from '../hooks/use-now.ts'
import { newestRows, searchMs } from '../newest-rows.ts'
import { deliveryStatus, nextText } from '../lines/webhook.ts'
import { redeliverDialog } from './webhook-dialogs.ts'

type Props = {
  endpoint: WebhookEndpoint
  isActive: boolean
  width: number
  height: number
  open(deliveryId: string): void
  back(): void
}

/** The newest deliveries to an endpoint. */
export function WebhookDeliveries({ endpoint, isActive, width, height, open, back }: Props) {
  const { api, theme, ask, copy, toast } = useConsole()
  const nowMs = useNow()
  const [onlyFailed, setOnlyFailed] = useKept('webhooks only failed', false)
  const load = () =>
    newestRows(200, (page) => {
      const query = { ...page, ...(onlyFailed && { status: 'failed' as const }) }
      return api.asDeveloper('GET', '/v1/webhooks/:id/deliveries', { params: { id: endpoint.id }, query })
    })
  const deliveries = useLive(`deliveries ${endpoint.id} ${onlyFailed}`, load, { everyMs: searchMs })
  const list = useList({
    name: `deliveries ${endpoint.id}`,
    rows: deliveries.data?.rows ?? [],
    height: height - 2,
    idOf: ({ id }) => id,
    textOf: (one) => `${one.type} ${one.status} ${one.id} ${one.eventId}`,
    isActive,
  })
  const { selected } = list
  useKeys('detail', { back }, { isActive })
  useKeys(
    'webhooks',
    {
      open: selected === null ? undefined : () => open(selected.id),
      redeliver:
        selected === null ? undefined : () => ask(redeliverDialog({ api, toast }, endpoint.id, selected)),
      failures: { run: () => setOnlyFailed(!onlyFailed), label: onlyFailed ? 'all' : 'failures' },
      copy: selected === null ? undefined : () => copy(selected.id, 'delivery id'),
    },
    { isActive },
  )
  const columns: Column<WebhookDelivery>[] = [
    { title: 'CREATED', width: 11, cell: ({ createdAt }) => recentTime(createdAt, nowMs) },
    { title: 'EVENT', width: 15, cell: ({ type }) => type },
    { title: 'STATUS', width: 11, cell: (one) => deliveryStatus(one, theme) },
    { title: 'TRIES', width: 5, align: 'right', cell: ({ attempts }) => String(attempts) },
    {
      title: 'LAST',
      width: 7,
      grow: 1,
      widest: 15,
      cell: (one) => resultText(one.lastStatusCode, one.lastError),
    },
    { title: 'NEXT', width: 14, spare: 1, cell: (one) => nextText(one, nowMs) },
    { title: 'DELIVERY', width: 30, spare: 2, cell: ({ id }) => id },
  ]
  const title = [
    { text: onlyFailed ? 'Failed deliveries' : 'Deliveries', paint: isActive ? theme.paint.bold : undefined },
    ` to ${endpoint.url}`,
  ]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Rule width={width} title={title} />
      {deliveries.data === undefined ? (
        <Waiting live={deliveries} width={width} height={height - 1} />
      ) : (
        <ListTable list={list} columns={columns} width={width} empty={onlyFailed ? noneFailed : none} />
      )}
    </Box>
  )
}

const none = ['No deliveries yet. Send a code, or T for a test.']
const noneFailed = ['None failed. f shows all deliveries.']
