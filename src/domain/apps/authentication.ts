import type { Application } from './applications.ts'
import { notAllowed, type Developer } from '../accounts/developers.ts'
import { ServiceError } from '../model/errors.ts'
import type { Stores } from '../store/store.ts'

/** What a backend presents. Anything may be absent or rubbish. */
export type PresentedCredentials = {
  clientId: string | undefined
  clientSecret: string | undefined
  apiKey: string | undefined
}

/** What a call is checked against. */
export type ApplicationCredentials = Pick<
  Application,
  | 'id'
  | 'developerId'
  | 'projectId'
  | 'environment'
  | 'status'
  | 'otpTtlSeconds'
  | 'credentialsVersion'
  | 'clientIdSalt'
  | 'clientIdHash'
  | 'clientSecretSalt'
  | 'clientSecretHash'
  | 'apiKeySalt'
  | 'apiKeyHash'
> & { developerStatus: Developer['status']; plan: string }

/** The application that a call comes from, as it was when its credentials were checked. */
export type CallingApplication = Pick<
  Application,
  'id' | 'developerId' | 'projectId' | 'environment' | 'otpTtlSeconds' | 'credentialsVersion'
> & {
  /** Of its developer; `resolvePlan` has the numbers. */
  plan: string
}

/** Tells which application presents credentials. Nothing is cached: a rotation or a disabling holds at once. */
export type AppAuth = {
  /**
   * All three together: the API key, then the client ID, then the client secret, and only then the status.
   *
   * @throws UNAUTHENTICATED the same for every cause; FORBIDDEN (APPLICATION_DISABLED, ACCOUNT_NOT_ALLOWED)
   */
  authenticate(credentials: PresentedCredentials): Promise<CallingApplication>
  /** The API key alone. Throws the same. */
  authenticateKey(apiKey: string | undefined): Promise<CallingApplication>
}

/**
 * Asks again inside the transaction of an operation whether its caller may still do it: between the check of the
 * credentials and the transaction they may have been rotated, or the application or its developer disabled or deleted.
 * Until the transaction ends nothing can happen to the application.
 *
 * @throws UNAUTHENTICATED; FORBIDDEN (APPLICATION_DISABLED, ACCOUNT_NOT_ALLOWED)
 */
export async function revalidateCaller(tx: Stores, application: CallingApplication): Promise<void> {
  const credentialState = await tx.applications.lockAndCheckCredentials(
    application.id,
    application.credentialsVersion,
  )
  if (credentialState === 'stale') throw credentialsRejected()
  if (credentialState === 'disabled') throw applicationDisabled()
  if (credentialState === 'not_allowed') throw notAllowed()
}

/** Says nothing of the cause, so that nobody learns which of the three was right. */
export const credentialsRejected = () =>
  new ServiceError('UNAUTHENTICATED', 'The application credentials are missing or do not match.')

/** For those alone who presented everything rightly. */
export const applicationDisabled = () =>
  new ServiceError('FORBIDDEN', 'The application is disabled.', { reason: 'APPLICATION_DISABLED' })
