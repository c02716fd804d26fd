import { usageError } from '../terminal/errors.ts'
import type { Route } from '../client/routes.ts'

export type Subscription = Route<'POST', '/v1/webhooks'>['body']['events'][number]

/** What can be told of, without `*`, which is all of them. */
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

/** `otp.verified,otp.failed`, or `*`. Throws a usage error that names what there is. */
export function readEvents(events: string): Subscription[] {
  const requested = events.split(',').map((item) => item.trim())
  const valid = requested.filter(isSubscription)
  if (valid.length < requested.length)
    throw usageError(
      '--events names kinds that there are not.',
      `There are: ${eventKinds.join(', ')}, and * for all.`,
    )
  return [...new Set(valid)]
}

const isSubscription = (value: string): value is Subscription =>
  value === '*' || eventKinds.some((kind) => kind === value)
