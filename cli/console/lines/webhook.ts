import type { WebhookDelivery, WebhookEndpoint } from '../../client/resources.ts'
import { formatTimeUntil } from '../../terminal/text.ts'
import type { Span } from '../spans.ts'
import { statusTone, type Theme } from '../theme.ts'

/** An endpoint that is enabled and gets nothing is the one to look at. */
export function endpointStatus(
  { status, disabledReason, failingSince }: WebhookEndpoint,
  theme: Theme,
): Span {
  if (status === 'disabled')
    return theme.status('off', disabledReason === null ? 'disabled' : `disabled: ${disabledReason}`)
  return failingSince === null ? theme.status('good', 'enabled') : theme.status('warning', 'failing')
}

export const deliveryStatus = ({ status }: Pick<WebhookDelivery, 'status'>, theme: Theme): Span =>
  theme.status(statusTone(status), status)

/** When it is tried again: `in 40 s`; `-` where it is not. */
export const nextAttemptText = ({ nextAttemptAt }: Pick<WebhookDelivery, 'nextAttemptAt'>, nowMs: number) =>
  nextAttemptAt === null ? '-' : formatTimeUntil(nextAttemptAt, nowMs)
