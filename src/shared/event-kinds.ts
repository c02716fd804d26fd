/** Events that webhook endpoints can subscribe to: of an OTP request, and of the guard. */
export const eventKinds = [
  'otp.sent',
  'otp.delivered',
  'otp.undelivered',
  'otp.verified',
  'otp.failed',
  'otp.expired',
  'otp.canceled',
  'otp.blocked',
  'guard.alert',
] as const

export type EventKind = (typeof eventKinds)[number]

/** `*` subscribes to every kind, including kinds that later versions add. */
export const subscriptions = [...eventKinds, '*'] as const

export type Subscription = (typeof subscriptions)[number]

/** Types of log entries: every webhook event, and three that only the log has. */
export const logTypes = [...eventKinds, 'otp.attempt_failed', 'webhook.disabled', 'guard.flagged'] as const

export type LogType = (typeof logTypes)[number]
