/** What can happen to an OTP request, in the words that webhook endpoints subscribe with. */
export const eventKinds = [
  'otp.sent',
  'otp.delivered',
  'otp.undelivered',
  'otp.verified',
  'otp.failed',
  'otp.expired',
  'otp.canceled',
  'otp.blocked',
] as const

export type EventKind = (typeof eventKinds)[number]

/** `*` stands for every kind, those that later versions add included. */
export const subscriptions = [...eventKinds, '*'] as const

export type Subscription = (typeof subscriptions)[number]

/** What a log entry can be: every kind of webhook event, and what only the log tells. */
export const logTypes = [...eventKinds, 'otp.attempt_failed', 'webhook.disabled', 'guard.flagged'] as const

export type LogType = (typeof logTypes)[number]
