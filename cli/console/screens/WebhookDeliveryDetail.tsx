import { Box } from 'ink'
import type { WebhookDeliveryDetail as Detail } from '../../client/resources.ts'
import { lasting, recentTime, relativeTime } from '../../terminal/text.ts'
import { faultSentence, resultText } from '../../terminal/webhook-text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { Waiting } from '../components/Waiting.tsx'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useLive } from '../hooks/use-polled.ts'
import { useNow } from '../hooks/use-now.ts'
import { useCrumbs } from '../hooks/use-shell.ts'
import type { ScreenProps } from '../screen.ts'
import { wrap, type Line } from '../spans.ts'
import { deliveryStatus, nextText } from '../lines/webhook.ts'
import { redeliverDialog } from './webhook-dialogs.ts'

type Props = ScreenProps & { webhookId: string; deliveryId: string; close(): void }
type Attempt = Detail['attempts'][number]

/** One event on its way to an endpoint: every attempt, and what the receiver said. */
export function WebhookDeliveryDetail({ width, height, webhookId, deliveryId, close }: Props) {
  const { api, theme, ask, copy, toast } = useConsole()
  const { paint } = theme
  const nowMs = useNow()
  const live = useLive(`delivery ${deliveryId}`, async () => {
    const params = { id: webhookId, deliveryId }
    return (await api.asDeveloper('GET', '/v1/webhooks/:id/deliveries/:deliveryId', { params })).data
  })
  const delivery = live.data
  const factLines = delivery === undefined ? [] : facts(delivery)
  const listHeight = Math.max(3, Math.floor((height - factLines.length) / 2))
  const list = useList({
    name: `attempts ${deliveryId}`,
    rows: delivery?.attempts ?? [],
    height: listHeight - 1,
    idOf: ({ at }) => at,
    isTail: true,
  })
  useCrumbs([deliveryId])
  useKeys('detail', { back: close })
  useKeys('webhooks', {
    redeliver:
      delivery === undefined ? undefined : () => ask(redeliverDialog({ api, toast }, webhookId, delivery)),
    copy: () => copy(deliveryId, 'delivery id'),
  })
  if (delivery === undefined) return <Waiting live={live} width={width} height={height} />

  const columns: Column<Attempt>[] = [
    { title: 'ATTEMPT', width: 11, cell: ({ at }) => recentTime(at, nowMs) },
    { title: 'RESULT', width: 16, cell: ({ statusCode, error }) => resultSpan(statusCode, error) },
    { title: 'TOOK', width: 10, cell: ({ durationMs }) => lasting(durationMs) },
  ]
  const answerHeight = height - factLines.length - listHeight - 1
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={factLines} width={width} />
      <ListTable list={list} columns={columns} width={width} empty={['Not tried yet.']} />
      {answerHeight > 0 && <Rule width={width} title="What the receiver answered" />}
      {answerHeight > 0 && <Lines lines={answerLines(list.selected)} width={width} height={answerHeight} />}
    </Box>
  )

  function facts(one: Detail): Line[] {
    const shown: [label: string, value: Line][] = [
      ['event', `${one.type}  ${one.eventId}`],
      [
        'status',
        [deliveryStatus(one, theme), one.nextAttemptAt === null ? '' : `  again ${nextText(one, nowMs)}`],
      ],
      ['created', `${recentTime(one.createdAt, nowMs)}  ${relativeTime(one.createdAt, nowMs)}`],
    ]
    const lines = shown.map(([label, value]): Line => [
      { text: ` ${label.padEnd(9)}`, paint: paint.dim },
      ...[value].flat(),
    ])
    return ['', ...lines, '']
  }

  function resultSpan(statusCode: Attempt['statusCode'], error: Attempt['error']) {
    return theme.status(error === null ? 'good' : 'bad', resultText(statusCode, error))
  }

  function answerLines(attempt: Attempt | null): Line[] {
    if (attempt === null) return []
    const { body, error } = attempt
    const fault = error === null ? [] : [{ text: ` ${faultSentence(error)}`, paint: paint.red }]
    const said =
      body === null || body === '' ? [{ text: ' Nothing.', paint: paint.dim }] : wrap(body, width - 2)
    return [...fault, ...said.map((line) => (typeof line === 'string' ? ` ${line}` : line))]
  }
}
