import { minuteMs, dayMs } from '../../shared/durations.ts'
import type { SessionStatus } from '../../shared/otp-values.ts'
import type { MessageVariables } from './message-variables.ts'

/** Milliseconds from the creation of a session until its link stops working. */
export const sessionLifetimeMs = 15 * minuteMs

/** Sends of a session that are charged, refused ones included: one link must not reach any number of phones. */
export const sessionSendsMax = 10

/** Milliseconds for which a session is kept after its creation. */
export const sessionRetentionMs = dayMs

/**
 * One use of the ready page by one end user. It has at most one OTP request at a time, and verifies one phone.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> created: POST /v1/otp/sessions
 *   created --> sent: send
 *   sent --> sent: send to another phone, which cancels the request before
 *   sent --> verified: right code
 *   created --> canceled: the end user goes back
 *   sent --> canceled: the end user goes back
 * ```
 *
 * `verified` and `canceled` are final. Any other session past `expiresAt` is treated as expired, which is not stored.
 */
export type OtpSession = {
  id: string
  developerId: string
  appId: string
  /** Hash of the token in the link. The token itself is never stored. */
  tokenHash: string
  returnUrl: string
  /** Opaque to otpd, returned to `returnUrl`. */
  state: string | null
  /** The only phone that the end user can verify, in E.164; null if the end user enters one. */
  phone: string | null
  locale: string | null
  /** Name of a template of the application; null for the built-in texts. */
  template: string | null
  /** Amount and payee of the payment that the end user confirms: shown by the page, and bound into each code. */
  variables: MessageVariables | null
  status: Exclude<SessionStatus, 'expired'>
  /** The newest request. */
  requestId: string | null
  /** Sends that were charged to the application. */
  sends: number
  createdAt: number
  expiresAt: number
}

/** Returns the status of a session at a time. */
export const sessionStatus = ({ status, expiresAt }: OtpSession, now: number): SessionStatus =>
  (status === 'created' || status === 'sent') && expiresAt <= now ? 'expired' : status

/** Tells whether the end user of a session can still send and verify a code. */
export const isOpenSession = (session: OtpSession, now: number): boolean => {
  const status = sessionStatus(session, now)
  return status === 'created' || status === 'sent'
}

/**
 * Returns the URL to which the browser goes at the end: `returnUrl` with the id of the session and `state`.
 *
 * @param state null for a browser that must not learn it
 */
export function sessionReturnUrl({ id, returnUrl, state: own }: OtpSession, state = own): string {
  const url = new URL(returnUrl)
  url.searchParams.set('session', id)
  if (state !== null) url.searchParams.set('state', state)
  return url.href
}
