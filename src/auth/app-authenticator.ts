import { hash } from 'node:crypto'
import {
  applicationDisabled,
  credentialsRejected,
  missingCredential,
  requireCredentials,
  signatureRejected,
  type AppAuth,
  type PresentedCredentials,
} from '../domain/apps/authentication.ts'
import { ServiceError } from '../domain/model/errors.ts'
import { isId } from '../domain/model/ids.ts'
import { createEpochCache } from '../domain/model/epoch-cache.ts'
import type { ApplicationCredentials, CallingApplication, Environment } from '../domain/model/application.ts'
import {
  completeCredential,
  hasCredentialFormat,
  matchesCredential,
  previewCredential,
  compareWithDummy,
} from '../domain/apps/credentials.ts'
import { notAllowed } from '../domain/accounts/developers.ts'
import type { Store } from '../domain/store/store.ts'
import { splitSecrets } from '../shared/sids.ts'

const knownCredentialsMax = 10_000

/** Key of what is known without an epoch, which operations check again. */
const noEpoch = 0

/**
 * Authenticates applications by their credentials. Credentials that matched are known by their hash until anything is
 * written that authentication reads (an epoch); credentials that did not match are checked every time. On PostgreSQL,
 * which has no epoch, known credentials serve operations alone.
 */
export function createAppAuthenticator({ store }: { store: Store<'applications'> }): AppAuth {
  /** Finds the application of an API key, whatever its status. @throws UNAUTHENTICATED if there is none */
  async function findByKey(apiKey: string | undefined): Promise<ApplicationCredentials> {
    if (!hasCredentialFormat('api', apiKey)) throw credentialsRejected()
    return findByAnyKey(apiKey, () => apiKey)
  }

  /** @param apiKey the key, or its last digits @param toKey completes it for an environment */
  async function findByAnyKey(
    apiKey: string,
    toKey: (environment: Environment) => string,
  ): Promise<ApplicationCredentials> {
    const candidates = await store.read.applications.findByApiKeyPreview(previewCredential(apiKey))
    // An unknown key costs a hash too, so that timing does not reveal whether its preview exists.
    if (candidates.length === 0) compareWithDummy(toKey('live'))
    const match = candidates.find(({ apiKeySalt, apiKeyHash, environment }) =>
      matchesCredential(toKey(environment), { salt: apiKeySalt, hash: apiKeyHash }),
    )
    if (!match) throw credentialsRejected()
    return match
  }

  const known = createEpochCache<CallingApplication>(knownCredentialsMax)

  /**
   * @param presented what `check` looks at
   * @param isCheckedAgain whether an operation checks the caller again
   * @throws what `check` throws
   */
  async function remember(
    presented: Array<string | undefined>,
    check: () => Promise<CallingApplication>,
    isCheckedAgain = false,
  ): Promise<CallingApplication> {
    const epoch = store.read.applications.credentialEpoch()
    if (epoch === undefined && !isCheckedAgain) return check()
    // A header has no line break. The time that it takes to find a hash tells nothing about the values.
    const digest = hash('sha256', presented.join('\n'), 'base64')
    const found = known.get(digest, epoch ?? noEpoch)
    if (found) return found
    const application = { ...(await check()), epoch }
    known.set(digest, epoch ?? noEpoch, application)
    return application
  }

  const remembered = async (presented: PresentedCredentials, isCheckedAgain: boolean) => {
    requireCredentials(presented)
    const { clientId, clientSecret, apiKey } = presented
    return remember([clientId, clientSecret, apiKey], () => checkAll(presented), isCheckedAgain)
  }

  return {
    authenticate: (presented) => remembered(presented, false),
    authenticateForOperation: (presented) => remembered(presented, true),

    authenticateKey: async (apiKey) => {
      if (!apiKey) throw missingCredential('x-api-key', 'Send the API key of an application.')
      return remember([apiKey], async () => requireActive(await findByKey(apiKey)))
    },

    async authenticateSigned(applicationId, isSigned) {
      const application = isId('app', applicationId)
        ? await store.read.applications.findSigning(applicationId)
        : undefined
      const secret = application?.webhookSecret
      if (!application || !secret || !isSigned(secret)) throw signatureRejected()
      try {
        return requireActive(application)
      } catch (error) {
        if (error instanceof ServiceError) return { refused: error }
        throw error
      }
    },

    authenticateJoined: (applicationId, joinedSecrets) =>
      remember([applicationId, joinedSecrets], () => checkJoined(applicationId, joinedSecrets)),
  }

  /** The environment, which is part of the secrets, is that of the application. */
  async function checkJoined(applicationId: string | undefined, joinedSecrets: string) {
    const secrets = splitSecrets(joinedSecrets)
    if (!secrets) throw credentialsRejected()
    const application = await findByAnyKey(secrets.apiKey, (of) =>
      completeCredential('api', of, secrets.apiKey),
    )
    const { id, environment, clientSecretSalt, clientSecretHash } = application
    const clientSecret = completeCredential('secret', environment, secrets.clientSecret)
    const matches =
      id === applicationId &&
      matchesCredential(clientSecret, { salt: clientSecretSalt, hash: clientSecretHash })
    if (!matches) throw credentialsRejected()
    return requireActive(application)
  }

  async function checkAll({ clientId, clientSecret, apiKey }: PresentedCredentials) {
    const application = await findByKey(apiKey)
    const { clientIdSalt, clientIdHash, clientSecretSalt, clientSecretHash } = application
    const matches =
      hasCredentialFormat('client', clientId) &&
      matchesCredential(clientId, { salt: clientIdSalt, hash: clientIdHash }) &&
      hasCredentialFormat('secret', clientSecret) &&
      matchesCredential(clientSecret, { salt: clientSecretSalt, hash: clientSecretHash })
    if (!matches) throw credentialsRejected()
    return requireActive(application)
  }
}

/** Checks the status, only after all credentials matched: other callers must not learn it. */
function requireActive(application: ApplicationCredentials): CallingApplication {
  if (application.status !== 'active') throw applicationDisabled()
  if (application.developerStatus !== 'active') throw notAllowed()
  const { id, developerId, projectId, environment, otpTtlSeconds, credentialsVersion, plan } = application
  return { id, developerId, projectId, environment, otpTtlSeconds, credentialsVersion, plan }
}
