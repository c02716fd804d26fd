import { hash } from 'node:crypto'
import {
  applicationDisabled,
  credentialsRejected,
  missingCredential,
  requireCredentials,
  signatureRejected,
  tokenSeconds,
  type AppAuth,
  type Credentials,
  type JoinedCredentials,
  type PresentedCredentials,
} from '../domain/apps/authentication.ts'
import type { Clock } from '../domain/model/clock.ts'
import { notFound, ServiceError } from '../domain/model/errors.ts'
import { messageFields } from '../domain/model/message-settings.ts'
import { isId } from '../domain/model/ids.ts'
import type { Keys } from '../domain/model/keys.ts'
import type { Random } from '../domain/model/random.ts'
import { seal, unseal } from '../domain/model/sealed.ts'
import { pick } from '../shared/fields.ts'
import { createVersionedCache } from '../domain/model/versioned-cache.ts'
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

type CredentialKind = 'all' | 'key' | 'joined by client' | 'joined by id' | 'token'

/** Key of what is known without a version, which operations check again. */
const noVersion = 0

/**
 * Authenticates applications by their credentials. Credentials that matched are known by their hash until anything is
 * written that authentication reads (a version); credentials that did not match are checked every time. On PostgreSQL,
 * which has no such version, known credentials serve operations alone.
 */
export function createAppAuthenticator({
  store,
  keys,
  clock,
  random,
}: {
  store: Store<'applications'>
  keys: Pick<Keys, 'accessToken'>
  clock: Clock
  random: Random
}): AppAuth {
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

  const known = createVersionedCache<CallingApplication>(knownCredentialsMax)

  /**
   * Finds credentials by their hash: a header has no line break, and the time that this takes tells nothing about them.
   *
   * @param presented what `check` looks at. It begins with its kind, so that no credentials pass for those of another
   * @param isCheckedAgain whether an operation checks the caller again
   * @throws what `check` throws
   */
  async function remember(
    presented: readonly [kind: CredentialKind, ...Array<string | undefined>],
    check: () => Promise<CallingApplication>,
    isCheckedAgain = false,
  ): Promise<CallingApplication> {
    const version = store.read.applications.configurationVersion()
    if (version === undefined && !isCheckedAgain) return check()
    const key = hash('sha256', presented.join('\n'), 'base64')
    const found = known.get(key, version ?? noVersion)
    if (found) return found
    const application = { ...(await check()), configurationVersion: version }
    known.set(key, version ?? noVersion, application)
    return application
  }

  async function authenticate(presented: Credentials, isCheckedAgain: boolean): Promise<CallingApplication> {
    if ('accessToken' in presented) {
      const { appId, version } = readToken(presented.accessToken)
      return remember(['token', appId, `${version}`], () => checkVersion(appId, version), isCheckedAgain)
    }
    if ('joinedSecrets' in presented) {
      const { joinedSecrets } = presented
      const check = () => checkJoined(presented)
      return 'clientId' in presented
        ? remember(['joined by client', presented.clientId, joinedSecrets], check, isCheckedAgain)
        : remember(['joined by id', presented.applicationId, joinedSecrets], check, isCheckedAgain)
    }
    const { clientId, clientSecret, apiKey } = presented
    return remember(['all', clientId, clientSecret, apiKey], () => checkAll(presented), isCheckedAgain)
  }

  /** @throws UNAUTHENTICATED it was not made here, or is too old */
  function readToken(token: string): { appId: string; version: number } {
    const [appId = '', version, expiresAt] = openToken(keys, token)?.split(' ') ?? []
    if (!(Number(expiresAt) > clock.now())) throw credentialsRejected()
    return { appId, version: Number(version) }
  }

  /** Checks that no credential was replaced since a token was made. */
  async function checkVersion(appId: string, version: number): Promise<CallingApplication> {
    const application = await store.read.applications.findSigning(appId)
    if (application?.credentialsVersion !== version) throw credentialsRejected()
    return requireActive(application)
  }

  return {
    authenticate: (presented) => authenticate(presented, false),
    authenticateForOperation: (presented) => authenticate(presented, true),

    issueToken({ id, credentialsVersion }) {
      const expiresAt = clock.now() + tokenSeconds * 1000
      return seal(keys.accessToken, tokenContext, `${id} ${credentialsVersion} ${expiresAt}`, random)
    },

    authenticateKey: async (apiKey) => {
      if (!apiKey) throw missingCredential('x-api-key', 'Send the API key of an application.')
      return remember(['key', apiKey], async () => requireActive(await findByKey(apiKey)))
    },

    async findActive(applicationId) {
      const application = await store.read.applications.findSigning(applicationId)
      if (!application) throw notFound('application')
      return requireActive(application)
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
  }

  /** The environment, which is part of the secrets, is that of the application. */
  async function checkJoined(presented: JoinedCredentials) {
    const secrets = splitSecrets(presented.joinedSecrets)
    if (!secrets) throw credentialsRejected()
    const application = await findByAnyKey(secrets.apiKey, (of) =>
      completeCredential('api', of, secrets.apiKey),
    )
    const { id, environment, clientSecretSalt, clientSecretHash } = application
    const isNamed =
      'clientId' in presented ? isClientId(application, presented.clientId) : presented.applicationId === id
    const clientSecret = completeCredential('secret', environment, secrets.clientSecret)
    const matches =
      isNamed && matchesCredential(clientSecret, { salt: clientSecretSalt, hash: clientSecretHash })
    if (!matches) throw credentialsRejected()
    return requireActive(application)
  }

  async function checkAll(presented: PresentedCredentials) {
    requireCredentials(presented)
    const { clientId, clientSecret, apiKey } = presented
    const application = await findByKey(apiKey)
    const { clientSecretSalt, clientSecretHash } = application
    const matches =
      isClientId(application, clientId) &&
      hasCredentialFormat('secret', clientSecret) &&
      matchesCredential(clientSecret, { salt: clientSecretSalt, hash: clientSecretHash })
    if (!matches) throw credentialsRejected()
    return requireActive(application)
  }
}

const isClientId = (
  { clientIdSalt, clientIdHash }: ApplicationCredentials,
  clientId: string | undefined,
): boolean =>
  hasCredentialFormat('client', clientId) &&
  matchesCredential(clientId, { salt: clientIdSalt, hash: clientIdHash })

/** Longest token that is opened; its own are shorter. */
const tokenLengthMax = 512
const tokenContext = 'application'

/** Opens what `issueToken` sealed. @returns undefined for any other text */
function openToken(keys: Pick<Keys, 'accessToken'>, token: string): string | undefined {
  if (token.length > tokenLengthMax) return undefined
  try {
    return unseal(keys.accessToken, tokenContext, token)
  } catch {
    return undefined
  }
}

/** Checks the status, only after all credentials matched: other callers must not learn it. */
function requireActive(application: ApplicationCredentials): CallingApplication {
  if (application.status !== 'active') throw applicationDisabled()
  if (application.developerStatus !== 'active') throw notAllowed()
  return pick(application, callerFields)
}

// prettier-ignore
const callerFields = [
  'id', 'developerId', 'projectId', 'environment', 'otpTtlSeconds', 'countries', 'credentialsVersion', 'plan',
  ...messageFields,
] as const
