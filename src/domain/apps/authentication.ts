import { notAllowed } from '../accounts/developers.ts'
import { ServiceError } from '../model/errors.ts'
import type { Stores } from '../store/store.ts'
import type { CallingApplication } from '../model/application.ts'

/** Credentials as received from a backend, unvalidated. */
export type PresentedCredentials = {
  clientId: string | undefined
  clientSecret: string | undefined
  apiKey: string | undefined
}

/** Authenticates applications. Nothing is cached: rotating or disabling takes effect immediately. */
export type AppAuth = {
  /**
   * Checks all three credentials: the API key, then the client ID, then the client secret, and only then the status.
   *
   * @throws UNAUTHENTICATED the same for every cause; FORBIDDEN (APPLICATION_DISABLED, ACCOUNT_NOT_ALLOWED)
   */
  authenticate(credentials: PresentedCredentials): Promise<CallingApplication>
  /** Checks the API key only. Throws the same errors. */
  authenticateKey(apiKey: string | undefined): Promise<CallingApplication>
}

/**
 * Checks the caller again inside the transaction of an operation: after authentication the credentials may have been
 * rotated, or the application or its developer disabled or deleted. Locks the application until the transaction ends.
 *
 * @throws UNAUTHENTICATED; FORBIDDEN (APPLICATION_DISABLED, ACCOUNT_NOT_ALLOWED)
 */
export async function revalidateCaller(
  tx: Pick<Stores, 'applications'>,
  application: CallingApplication,
): Promise<void> {
  const credentialState = await tx.applications.lockAndCheckCredentials(
    application.id,
    application.credentialsVersion,
  )
  if (credentialState === 'stale') throw credentialsRejected()
  if (credentialState === 'disabled') throw applicationDisabled()
  if (credentialState === 'not_allowed') throw notAllowed()
}

/** Builds an error without the cause, so that callers cannot learn which of the three was right. */
export const credentialsRejected = () =>
  new ServiceError(
    'UNAUTHENTICATED',
    'The application credentials are missing or wrong. Check the x-client-id, x-client-secret and x-api-key headers.',
  )

/** Builds the error for a disabled application. Only for callers with valid credentials. */
export const applicationDisabled = () =>
  new ServiceError('FORBIDDEN', 'This application is disabled. Enable it, then retry.', {
    reason: 'APPLICATION_DISABLED',
  })
