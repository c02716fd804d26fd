import { applicationDisabled, credentialsRejected, type AppAuth } from '../domain/apps/authentication.ts'
import type { ApplicationCredentials, CallingApplication } from '../domain/model/application.ts'
import {
  hasCredentialFormat,
  matchesCredential,
  previewCredential,
  compareWithDummy,
} from '../domain/apps/credentials.ts'
import { notAllowed } from '../domain/accounts/developers.ts'
import type { Store } from '../domain/store/store.ts'

/** Authenticates applications by their credentials, checked against the store on every call. */
export function createAppAuthenticator({ store }: { store: Store<'applications'> }): AppAuth {
  /** Finds the application of an API key, whatever its status. @throws UNAUTHENTICATED if there is none */
  async function findByKey(apiKey: string | undefined): Promise<ApplicationCredentials> {
    if (!hasCredentialFormat('api', apiKey)) throw credentialsRejected()
    const candidates = await store.read.applications.findByApiKeyPreview(previewCredential(apiKey))
    // An unknown key costs a hash too, so that timing does not reveal whether its preview exists.
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

/** Checks the status, only after all credentials matched: other callers must not learn it. */
function requireActive(application: ApplicationCredentials): CallingApplication {
  if (application.status !== 'active') throw applicationDisabled()
  if (application.developerStatus !== 'active') throw notAllowed()
  const { id, developerId, projectId, environment, otpTtlSeconds, credentialsVersion, plan } = application
  return { id, developerId, projectId, environment, otpTtlSeconds, credentialsVersion, plan }
}
