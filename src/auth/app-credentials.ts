import {
  applicationDisabled,
  credentialsRejected,
  type AppAuth,
  type ApplicationCredentials,
  type CallingApplication,
} from '../domain/apps/authentication.ts'
import {
  hasCredentialForm,
  matchesCredential,
  previewCredential,
  spendComparison,
} from '../domain/apps/credentials.ts'
import { notAllowed } from '../domain/accounts/developers.ts'
import type { Store } from '../domain/store/store.ts'

/** Checks the credentials of applications against the store, anew for every call. */
export function createAppAuthenticator({ store }: { store: Store }): AppAuth {
  /** The application that a key belongs to, whatever its status. */
  async function findByKey(apiKey: string | undefined): Promise<ApplicationCredentials> {
    if (!hasCredentialForm('api', apiKey)) throw credentialsRejected()
    const candidates = await store.read.applications.findByApiKeyPreview(previewCredential(apiKey))
    // An unknown key costs a hash too, so that the time tells nobody whether the eight characters are known.
    if (candidates.length === 0) spendComparison(apiKey)
    const found = candidates.find(({ apiKeySalt, apiKeyHash }) =>
      matchesCredential(apiKey, { salt: apiKeySalt, hash: apiKeyHash }),
    )
    if (!found) throw credentialsRejected()
    return found
  }

  return {
    async authenticate({ clientId, clientSecret, apiKey }) {
      const found = await findByKey(apiKey)
      const { clientIdSalt, clientIdHash, clientSecretSalt, clientSecretHash } = found
      const matches =
        hasCredentialForm('client', clientId) &&
        matchesCredential(clientId, { salt: clientIdSalt, hash: clientIdHash }) &&
        hasCredentialForm('secret', clientSecret) &&
        matchesCredential(clientSecret, { salt: clientSecretSalt, hash: clientSecretHash })
      if (!matches) throw credentialsRejected()
      return admit(found)
    },

    authenticateKey: async (apiKey) => admit(await findByKey(apiKey)),
  }
}

/** Everything presented has matched: only now may the caller learn of a status. */
function admit(found: ApplicationCredentials): CallingApplication {
  if (found.status !== 'active') throw applicationDisabled()
  if (found.developerStatus !== 'active') throw notAllowed()
  const { id, developerId, projectId, environment, otpTtlSeconds, credentialsVersion, plan } = found
  return { id, developerId, projectId, environment, otpTtlSeconds, credentialsVersion, plan }
}
