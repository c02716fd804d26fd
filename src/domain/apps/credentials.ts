import { hash, timingSafeEqual } from 'node:crypto'
import { hmac } from '../../shared/hmac.ts'
import type { Keys } from '../model/keys.ts'
import type { Random } from '../model/random.ts'
import type { Environment, StoredCredentials, FreshCredential } from '../model/application.ts'

/** Appears in the value: `ph_live_secret_…`. */
type CredentialKind = 'client' | 'secret' | 'api'

/** A stored credential: its own 16-byte salt, and SHA-256 over salt and value, both in hex. */
type StoredCredential = { salt: string; hash: string }

/** Secrets that are shown to the developer once. */
export type IssuedSecrets = { clientSecret: string; apiKey: string; webhookSecret: string }

/** Credentials that can be replaced independently. */
export type RotationType = 'secret' | 'api' | 'webhook_secret'

const hexDigits = 48
const saltBytes = 16

const credentialPatterns = {
  client: /^ph_(?:live|test)_client_[0-9a-f]{48}$/,
  secret: /^ph_(?:live|test)_secret_[0-9a-f]{48}$/,
  api: /^ph_(?:live|test)_api_[0-9a-f]{48}$/,
} as const satisfies Record<CredentialKind, RegExp>

/** Cheap format check before any hashing. */
export const hasCredentialFormat = (kind: CredentialKind, value: string | undefined): value is string =>
  value !== undefined && credentialPatterns[kind].test(value)

/**
 * Generates a credential: 192 random bits after a prefix, with kind and environment, for people and secret scanners.
 */
export const makeCredential = (kind: 'secret' | 'api', environment: Environment, random: Random) =>
  completeCredential(kind, environment, randomHex(hexDigits / 2, random))

/** Puts the prefix before the 48 hex digits of a credential. */
export const completeCredential = (kind: 'secret' | 'api', environment: Environment, digits: string) =>
  `ph_${environment}_${kind}_${digits}`

/**
 * Generates a webhook secret. Its 48 hex digits are valid base64 too, as Standard Webhooks libraries expect after
 * `whsec_`.
 */
export const makeWebhookSecret = (random: Random) => `whsec_${randomHex(hexDigits / 2, random)}`

/**
 * Derives the client ID of an application from its id and a key that is not in the database. It can so be shown at any
 * time, although only its hash is stored.
 */
export function deriveClientId(
  keys: Pick<Keys, 'clientId'>,
  environment: Environment,
  applicationId: string,
): string {
  const mac = hmac(keys.clientId).update(`client-id:${applicationId}`).digest('hex')
  return `ph_${environment}_client_${mac.slice(0, hexDigits)}`
}

/** Hashes a credential with a new random salt. */
export function hashCredential(value: string, random: Random): StoredCredential {
  const salt = randomHex(saltBytes, random)
  return { salt, hash: digestWithSalt(value, salt).toString('hex') }
}

/** Compares in constant time. */
export const matchesCredential = (value: string, stored: StoredCredential) =>
  timingSafeEqual(digestWithSalt(value, stored.salt), Uint8Array.fromHex(stored.hash))

/** Burns the same time as a real comparison (timing side channel). */
export const compareWithDummy = (value: string) => void matchesCredential(value, dummyCredential)

const dummyCredential: StoredCredential = { salt: '00'.repeat(saltBytes), hash: '00'.repeat(32) }

/**
 * Returns the first and last four hex digits: the only part of a secret shown again, and the lookup key of an API
 * key.
 */
export const previewCredential = (value: string) => value.slice(-hexDigits, 4 - hexDigits) + value.slice(-4)

/** Formats a preview as `ph_live_secret_1a2b****9f0e`. @param preview from `previewCredential` */
export const maskCredential = (kind: CredentialKind, environment: Environment, preview: string) =>
  `ph_${environment}_${kind}_${preview.slice(0, 4)}****${preview.slice(4)}`

/** Generates all credentials of a new application. */
export function issueCredentials(
  keys: Pick<Keys, 'clientId'>,
  environment: Environment,
  applicationId: string,
  random: Random,
): { secrets: IssuedSecrets; stored: StoredCredentials } {
  const clientSecret = makeCredential('secret', environment, random)
  const apiKey = makeCredential('api', environment, random)
  const webhookSecret = makeWebhookSecret(random)
  const clientIdStored = hashCredential(deriveClientId(keys, environment, applicationId), random)
  const clientSecretStored = hashCredential(clientSecret, random)
  const apiKeyStored = hashCredential(apiKey, random)
  return {
    secrets: { clientSecret, apiKey, webhookSecret },
    stored: {
      clientIdSalt: clientIdStored.salt,
      clientIdHash: clientIdStored.hash,
      clientSecretSalt: clientSecretStored.salt,
      clientSecretHash: clientSecretStored.hash,
      clientSecretPreview: previewCredential(clientSecret),
      apiKeySalt: apiKeyStored.salt,
      apiKeyHash: apiKeyStored.hash,
      apiKeyPreview: previewCredential(apiKey),
      webhookSecret,
    },
  }
}

/** Generates a replacement for one credential. */
export function replaceCredential(
  type: RotationType,
  environment: Environment,
  random: Random,
): { value: string; stored: FreshCredential } {
  if (type === 'webhook_secret') {
    const value = makeWebhookSecret(random)
    return { value, stored: { type, value } }
  }
  const value = makeCredential(type, environment, random)
  return { value, stored: { type, preview: previewCredential(value), ...hashCredential(value, random) } }
}

function digestWithSalt(value: string, salt: string): Buffer {
  const input = Buffer.alloc(saltBytes + Buffer.byteLength(value))
  input.write(salt, 'hex')
  input.write(value, saltBytes)
  return hash('sha256', input, 'buffer')
}

function randomHex(bytes: number, random: Random): string {
  const buffer = new Uint8Array(bytes)
  random(buffer)
  return Buffer.from(buffer.buffer).toString('hex')
}
