/** Environment of an application and of all that it does. Messages of `test` go to the inbox and to no phone. */
export const environments = ['live', 'test'] as const
export type Environment = (typeof environments)[number]

/** Statuses of an OTP request: see `OtpRequest`. All but `pending` are final. */
export const otpStatuses = ['pending', 'verified', 'failed', 'expired', 'canceled'] as const
export type OtpStatus = (typeof otpStatuses)[number]

/** Reasons why a request failed: five wrong codes, no provider could deliver the message, or the guard blocked it. */
export const failureReasons = ['max_attempts', 'delivery_failed', 'blocked'] as const
export type FailureReason = (typeof failureReasons)[number]

/** Statuses of a session of the ready page: see `OtpSession`. */
export const sessionStatuses = ['created', 'sent', 'verified', 'canceled', 'expired'] as const
export type SessionStatus = (typeof sessionStatuses)[number]

/** Channels of messages. */
export const channels = ['sms', 'whatsapp', 'telegram', 'voice', 'rcs'] as const
/** Channel of a request that has no message: its phone was proved without a code. */
const silentChannel = 'silent'
export type MessageChannel = (typeof channels)[number]
/** How a request reaches its phone. */
export type Channel = MessageChannel | typeof silentChannel
export const requestChannels = [...channels, silentChannel] as const
