import { eventKinds, subscriptions, type Subscription } from '../../src/shared/event-kinds.ts'
import { usageError } from '../terminal/errors.ts'

/**
 * Parses `otp.verified,otp.failed`, or `*`.
 *
 * @throws usage error that names the unknown types and lists the known ones
 */
export function readEvents(events: string): Subscription[] {
  const requested = events.split(',').map((item) => item.trim())
  const valid = requested.filter(isSubscription)
  const unknown = requested.filter((value) => !isSubscription(value))
  if (unknown.length > 0)
    throw usageError(
      `--events has unknown event types: ${unknown.map((value) => value || "''").join(', ')}.`,
      `Event types: ${eventKinds.join(', ')}, or * for all.`,
    )
  return [...new Set(valid)]
}

const isSubscription = (value: string): value is Subscription =>
  subscriptions.some((subscription) => subscription === value)
