import { usageError } from '../terminal/errors.ts'
import type { Route } from '../client/routes.ts'

export type Subscription = Route<'POST', '/v1/webhooks'>['body']['events'][number]

/** Event types that an endpoint can subscribe to, without `*`, which means all. */
export const eventKinds = [
  'otp.sent',
  'otp.delivered',
  'otp.undelivered',
  'otp.verified',
  'otp.failed',
  'otp.expired',
  'otp.canceled',
  'otp.blocked',
] as const satisfies readonly Subscription[]

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
  value === '*' || eventKinds.some((kind) => kind === value)
