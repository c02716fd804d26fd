import {
  applicationDisabled,
  credentialsRejected,
  type AppAuth,
  type ApplicationCredentials,
  type CallingApplication,
} from '../domain/apps/authentication.ts'
import {
  hasCredentialFormat,
  matchesCredential,
  previewCredential,
  compareWithDummy,
} from '../domain/apps/credentials.ts'
import { notAllowed } from '../domain/accounts/developers.ts'
import type { Store } from '../domain/store/store.ts'

/** Checks the credentials of applications against the store, anew for every call. */
export function createAppAuthenticator({ store }: { store: Store }): AppAuth {
  /** The application that a key belongs to, whatever its status. */
  async function findByKey(apiKey: string | undefined): Promise<ApplicationCredentials> {
    if (!hasCredentialFormat('api', apiKey)) throw credentialsRejected()
    const candidates = await store.read.applications.findByApiKeyPreview(previewCredential(apiKey))
    // An unknown key costs a hash too, so that the time tells nobody whether the eight characters are known.
    if (candidates.length === 0) compareWithDummy(apiKey)
    const match = candidates.find(({ apiKeySalt, apiKeyHash }) =>
      matchesCredential(apiKey, { salt: apiKeySalt, hash: apiKeyHash }),
    )
    if (!match) throw credentialsRejected()
    return match
  }

  return {
    async authenticate({ clientId, clientSecret, apiKey }) {
      const application = await findByKey(apiKey)
      const { clientIdSalt, clientIdHash, clientSecretSalt, clientSecretHash } = application
      const matches =
        hasCredentialFormat('client', clientId) &&
        matchesCredential(clientId, { salt: clientIdSalt, hash: clientIdHash }) &&
        hasCredentialFormat('secret', clientSecret) &&
        matchesCredential(clientSecret, { salt: clientSecretSalt, hash: clientSecretHash })
      if (!matches) throw credentialsRejected()
      return requireActive(application)
    },

    authenticateKey: async (apiKey) => requireActive(await findByKey(apiKey)),
  }
}

/** Everything presented has matched: only now may the caller learn of a status. */
function requireActive(application: ApplicationCredentials): CallingApplication {
  if (application.status !== 'active') throw applicationDisabled()
  if (application.developerStatus !== 'active') throw notAllowed()
  const { id, developerId, projectId, environment, otpTtlSeconds, credentialsVersion, plan } = application
  return { id, developerId, projectId, environment, otpTtlSeconds, credentialsVersion, plan }
}
