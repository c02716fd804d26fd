import type { WebhookDelivery, WebhookEndpoint } from '../../client/resources.ts'
import { formatTimeUntil } from '../../terminal/text.ts'
import type { Span } from '../spans.ts'
import type { Theme } from '../theme.ts'

/** Formats the status of an endpoint; an enabled endpoint whose deliveries fail is a warning. */
export function endpointStatus(
  { status, disabledReason, failingSince }: WebhookEndpoint,
  theme: Theme,
): Span {
  if (status === 'disabled')
    return theme.status('off', disabledReason === null ? 'disabled' : `disabled: ${disabledReason}`)
  return failingSince === null ? theme.status('good', 'enabled') : theme.status('warning', 'failing')
}

/** Formats the time until the next attempt: `in 40 s`; `-` if there is none. */
export const nextAttemptText = ({ nextAttemptAt }: Pick<WebhookDelivery, 'nextAttemptAt'>, nowMs: number) =>
  nextAttemptAt === null ? '-' : formatTimeUntil(nextAttemptAt, nowMs)
