import { Box } from 'ink'
import { useState } from 'react'
import type { WebhookDeliveryDetail as Detail } from '../../client/resources.ts'
import { formatDuration, printable, recentTime } from '../../terminal/text.ts'
import { faultText, requestLines, resultText, type SentRequest } from '../../client/webhook-text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useResource } from '../hooks/use-resource.ts'
import { useNow } from '../hooks/use-now.ts'
import { useScroll } from '../hooks/use-scroll.ts'
import { useBreadcrumbs, usePhoneFormatter } from '../hooks/use-shell.ts'
import type { ScreenProps } from '../screen.ts'
import { wrap, type Line } from '../spans.ts'
import { factLines, timeWithAge, type Fact } from '../lines/facts.ts'
import { nextAttemptText } from '../lines/webhook.ts'
import { statusSpan } from '../theme.ts'
import { redeliverDialog } from './webhook-dialogs.ts'

type Props = ScreenProps & { webhookId: string; deliveryId: string; close(): void }
type Attempt = Detail['attempts'][number]

/** Page of a webhook delivery: each attempt with the receiver's response, or the newest request as it was sent. */
export function WebhookDeliveryDetail(props: Props) {
  const { width, height, webhookId, deliveryId } = props
  const [isRequestShown, setRequestShown] = useState(false)
  const polled = useResource('/v1/webhooks/:id/deliveries/:deliveryId', {
    params: { id: webhookId, deliveryId },
  })
  useBreadcrumbs([deliveryId])
  useKeys('detail', { back: isRequestShown ? () => setRequestShown(false) : props.close })
  const delivery = polled.data
  if (delivery === undefined) return <LoadingOrError polled={polled} width={width} height={height} />
  if (isRequestShown && delivery.request !== null)
    return <DeliveryRequest request={delivery.request} width={width} height={height} />
  return <DeliveryAttempts {...props} delivery={delivery} showRequest={() => setRequestShown(true)} />
}

function DeliveryRequest({
  request,
  width,
  height,
}: {
  request: SentRequest
  width: number
  height: number
}) {
  const { copy } = useConsole()
  const formatPhone = usePhoneFormatter()
  const { body } = request
  const lines = requestLines(request, formatPhone).map((line) => ` ${printable(line)}`)
  const { visible, handlers } = useScroll(lines, { width, height })
  useKeys('list', handlers)
  useKeys('webhooks', {
    // As it was sent: its signature is of these bytes.
    copy: body === null ? undefined : { run: () => copy(body, 'body'), label: 'copy body' },
  })
  return <Lines lines={visible} width={width} height={height} />
}

function DeliveryAttempts({
  width,
  height,
  webhookId,
  deliveryId,
  delivery,
  showRequest,
}: Props & { delivery: Detail; showRequest(): void }) {
  const console = useConsole()
  const { theme, openDialog, copy } = console
  const { paint } = theme
  const nowMs = useNow()
  const head = deliveryFacts(delivery)
  const listHeight = Math.max(3, Math.floor((height - head.length) / 2))
  const list = useList({
    name: `attempts ${deliveryId}`,
    rows: delivery.attempts,
    height: listHeight - 1,
    getRowId: ({ at }) => at,
    isTail: true,
  })
  useKeys('webhooks', {
    redeliver: () => openDialog(redeliverDialog(console, webhookId, delivery)),
    request: delivery.request === null ? { unavailable: 'no request is kept' } : showRequest,
    copy: () => copy(deliveryId, 'delivery id'),
  })

  const columns: Column<Attempt>[] = [
    { title: 'ATTEMPT', width: 11, cell: ({ at }) => recentTime(at, nowMs) },
    { title: 'RESULT', width: 16, cell: ({ statusCode, error }) => resultSpan(statusCode, error) },
    { title: 'DURATION', width: 10, cell: ({ durationMs }) => formatDuration(durationMs) },
  ]
  const responseHeight = height - head.length - listHeight - 1
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={head} width={width} />
      <ListTable list={list} columns={columns} width={width} empty={['No attempts yet.']} />
      {responseHeight > 0 && <Rule width={width} title="Response" />}
      {responseHeight > 0 && (
        <Lines lines={responseLines(list.selected)} width={width} height={responseHeight} />
      )}
    </Box>
  )

  function deliveryFacts(detail: Detail): Line[] {
    const facts: Fact[] = [
      ['event', `${detail.type}  ${detail.eventId}`],
      [
        'status',
        [
          statusSpan(detail, theme),
          detail.nextAttemptAt === null ? '' : `  next attempt ${nextAttemptText(detail, nowMs)}`,
        ],
      ],
      ['created', timeWithAge(detail.createdAt, nowMs)],
    ]
    return ['', ...factLines(facts, theme, 9), '']
  }

  function resultSpan(statusCode: Attempt['statusCode'], error: Attempt['error']) {
    return theme.status(error === null ? 'good' : 'bad', resultText(statusCode, error))
  }

  function responseLines(attempt: Attempt | null): Line[] {
    if (attempt === null) return []
    const { body, error } = attempt
    const errorLines = error === null ? [] : [{ text: ` ${faultText(error)}`, paint: paint.red }]
    const bodyLines =
      body === null || body === ''
        ? [{ text: ' No response body.', paint: paint.dim }]
        : wrap(body, width - 2)
    return [...errorLines, ...bodyLines.map((line) => (typeof line === 'string' ? ` ${line}` : line))]
  }
}
