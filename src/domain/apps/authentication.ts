import { notAllowed } from '../accounts/developers.ts'
import { ServiceError } from '../model/errors.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import type { Rows } from '../store/operation.ts'
import type { CallingApplication } from '../model/application.ts'

/** Credentials as received from a backend, unvalidated. */
export type PresentedCredentials = {
  clientId: string | undefined
  clientSecret: string | undefined
  apiKey: string | undefined
}

/** Client secret and API key as `joinSecrets` joins them. The name is undefined if it has the wrong form. */
export type JoinedCredentials = { joinedSecrets: string } & (
  { applicationId: string | undefined } | { clientId: string | undefined }
)

/** A token that `issueToken` made. */
type PresentedToken = { accessToken: string }

export type Credentials = PresentedCredentials | JoinedCredentials | PresentedToken

/** Seconds that a token is valid. */
export const tokenSeconds = 300

/** Authenticates applications. Rotating or disabling takes effect immediately. */
export type AppAuth = {
  /**
   * Checks all three credentials: the API key, then the client ID or the application's id, then the client secret, and only
   * then the status. Or checks a token.
   *
   * @throws UNAUTHENTICATED (MISSING_CREDENTIAL), or the same for every wrong value; FORBIDDEN (APPLICATION_DISABLED,
   *   ACCOUNT_NOT_ALLOWED)
   */
  authenticate(credentials: Credentials): Promise<CallingApplication>
  /**
   * Does the same for a call that is decided in an operation, which checks its caller again (`readRefusal`). On PostgreSQL
   * it accepts credentials that matched before without a query, even if they were replaced since. So before a call that
   * never reaches its operation returns an error, it must `authenticate`.
   */
  authenticateForOperation(credentials: Credentials): Promise<CallingApplication>
  /**
   * Makes a token that replaces the credentials of an application for `tokenSeconds`. It is not stored, and ends at once
   * with a rotation of secret or key, and with the application.
   */
  issueToken(application: CallingApplication): string
  /**
   * Checks a call that is signed with the webhook secret of an application.
   *
   * @param isSigned tells whether a secret made the signature
   * @returns the refusal FORBIDDEN for a right signature of a disabled application
   * @throws UNAUTHENTICATED (SIGNATURE_INVALID), also if there is no such application
   */
  authenticateSigned(
    applicationId: string,
    isSigned: (secret: string) => boolean,
  ): Promise<CallingApplication | { refused: ServiceError }>
  /**
   * Returns an active application, for a call that another secret has authenticated, such as the link of a session.
   *
   * @throws NOT_FOUND; FORBIDDEN (APPLICATION_DISABLED, ACCOUNT_NOT_ALLOWED)
   */
  findActive(applicationId: string): Promise<CallingApplication>
  /** Checks the API key only. Throws the same errors. */
  authenticateKey(apiKey: string | undefined): Promise<CallingApplication>
}

/**
 * Checks the caller again in an operation: after authentication the credentials may have been rotated, or the application
 * or its developer disabled or deleted.
 *
 * @returns the refusal UNAUTHENTICATED or FORBIDDEN (APPLICATION_DISABLED, ACCOUNT_NOT_ALLOWED)
 */
export function readRefusal(
  rows: Pick<Rows, 'credentialState'>,
  application: CallingApplication,
): Rejected | undefined {
  switch (rows.credentialState(application)) {
    case 'ok':
      return undefined
    case 'stale':
      return reject(credentialsRejected())
    case 'disabled':
      return reject(applicationDisabled())
    case 'not_allowed':
      return reject(notAllowed())
  }
}

/** Builds an error without the cause, so that callers cannot learn which of the three was right. */
export const credentialsRejected = () =>
  new ServiceError(
    'UNAUTHENTICATED',
    'The application credentials are wrong. Check that x-client-id, x-client-secret and x-api-key are current, and of one application.',
  )

/**
 * Checks that all three headers were sent. Looks at no stored value.
 *
 * @throws UNAUTHENTICATED (MISSING_CREDENTIAL) with the first one that is missing, empty, or the text of a variable that
 * is not set
 */
export function requireCredentials({ clientId, clientSecret, apiKey }: PresentedCredentials): void {
  requireHeader('x-client-id', clientId)
  requireHeader('x-client-secret', clientSecret)
  requireHeader('x-api-key', apiKey)
}

/** Texts that JavaScript and Python send for a variable that is not set. */
const unsetTexts = new Set(['undefined', 'null', 'None'])

function requireHeader(header: string, value: string | undefined | null) {
  if (!value) throw missingCredential(header, 'Send x-client-id, x-client-secret and x-api-key together.')
  if (unsetTexts.has(value))
    throw missingCredential(
      header,
      `It came as "${value}": set the variable that your program reads it from.`,
    )
}

/** UNAUTHENTICATED (SIGNATURE_INVALID). */
export const signatureRejected = () =>
  new ServiceError(
    'UNAUTHENTICATED',
    'The signature is wrong. Check the application id in the URL, the webhook secret, and the clock of the sender.',
    { reason: 'SIGNATURE_INVALID' },
  )

/** UNAUTHENTICATED (MISSING_CREDENTIAL). */
export const missingCredential = (header: string, advice: string) =>
  new ServiceError('UNAUTHENTICATED', `The header ${header} is missing or empty. ${advice}`, {
    reason: 'MISSING_CREDENTIAL',
    metadata: { header },
  })

/** Builds the error for a disabled application. Only for callers with valid credentials. */
export const applicationDisabled = () =>
  new ServiceError('FORBIDDEN', 'This application is disabled. Enable it, then retry.', {
    reason: 'APPLICATION_DISABLED',
  })
