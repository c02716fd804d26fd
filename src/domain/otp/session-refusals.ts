import { invalidField, ServiceError, tryAgainIn } from '../model/errors.ts'
import { sessionSendsMax, type OtpSession } from '../model/session.ts'

/** @throws INVALID_ARGUMENT for a URL that is none, has credentials or is of another origin */
export function requireReturnUrl(text: string, origins: readonly string[]): void {
  const url = URL.parse(text)
  // A blob: URL has the origin of the page that made it.
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (!url || !isWeb || url.username !== '' || url.password !== '')
    throw invalidField('body', 'returnUrl', 'Expected an absolute URL without user name and password.')
  if (!origins.includes(url.origin))
    throw invalidField(
      'body',
      'returnUrl',
      'Its origin is not one of page.returnOrigins. Add it with otpd app page --return-origin, or use another URL.',
    )
}

/** FORBIDDEN (PAGE_DISABLED). */
export const pageDisabled = () =>
  new ServiceError(
    'FORBIDDEN',
    'The page of this application is off. Set page.enabled, or run otpd app page with --on.',
    { reason: 'PAGE_DISABLED' },
  )

/** RATE_LIMITED (SESSION_SENDS), until the link ends. */
export function sendsExhausted({ expiresAt }: OtpSession, now: number): ServiceError {
  const retryAfterSeconds = Math.ceil((expiresAt - now) / 1000)
  const message = `This link has sent ${sessionSendsMax} codes. ${tryAgainIn(retryAfterSeconds)}`
  return new ServiceError('RATE_LIMITED', message, { reason: 'SESSION_SENDS', retryAfterSeconds })
}

/** CONFLICT (SESSION_CLOSED), also if another window has sent a code meanwhile. */
export const sessionClosed = () =>
  new ServiceError(
    'CONFLICT',
    'This session has ended, or moved on in another window. Load the page again.',
    {
      reason: 'SESSION_CLOSED',
    },
  )
