/** Events of messages that `POST /v1/otp/deliver` sends: they belong to no OTP request. */
export const relayKinds = ['message.sent', 'message.delivered', 'message.undelivered'] as const

export type RelayKind = (typeof relayKinds)[number]

/**
 * Events that webhook endpoints can subscribe to: of an OTP request, of a session of the ready page, of the guard, and of
 * relayed messages.
 */
export const eventKinds = [
  'otp.sent',
  'otp.delivered',
  'otp.undelivered',
  'otp.verified',
  'otp.failed',
  'otp.expired',
  'otp.canceled',
  'otp.blocked',
  'session.verified',
  'guard.alert',
  ...relayKinds,
] as const

export type EventKind = (typeof eventKinds)[number]

/**
 * Kinds that `*` subscribes to, including those that later versions add; not relayed messages, because the receivers of
 * `*` expect a request.
 */
export const wildcardKinds: readonly EventKind[] = eventKinds.filter(
  (kind) => !relayKinds.some((one) => one === kind),
)

/** Kinds, or `*` for `wildcardKinds`. */
export const subscriptions = [...eventKinds, '*'] as const

export type Subscription = (typeof subscriptions)[number]

/** Types of log entries: every webhook event, and six that only the log has. */
export const logTypes = [
  ...eventKinds,
  'message.verified',
  'message.failed',
  'otp.attempt_failed',
  'otp.refused',
  'webhook.disabled',
  'guard.flagged',
] as const

export type LogType = (typeof logTypes)[number]

/** Types of log entries that analytics counts as failures. */
export const failureTypes = [
  'otp.failed',
  'otp.expired',
  'otp.undelivered',
  'otp.blocked',
] as const satisfies readonly LogType[]
