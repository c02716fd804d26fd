import { hash, timingSafeEqual } from 'node:crypto'
import { hmac, type Keys } from '../model/keys.ts'
import type { Random } from '../model/clock.ts'

export type Environment = 'live' | 'test'

/** As the word stands in the value: `ph_live_secret_…`. */
export type CredentialKind = 'client' | 'secret' | 'api'

/** What is kept of a credential: a salt of its own (16 bytes) and SHA-256 over salt and value, both in hex. */
export type StoredCredential = { salt: string; hash: string }

/** The credentials of one application as they are stored. Only the webhook secret can be read from it. */
export type StoredCredentials = {
  clientIdSalt: string
  clientIdHash: string
  clientSecretSalt: string
  clientSecretHash: string
  clientSecretPreview: string
  apiKeySalt: string
  apiKeyHash: string
  apiKeyPreview: string
  /** In clear: every delivery is signed with it. */
  webhookSecret: string
}

/** What an application's developer is told once. */
export type IssuedSecrets = { clientSecret: string; apiKey: string; webhookSecret: string }

/** The credentials that can be replaced, each on its own. */
export type RotationType = 'secret' | 'api' | 'webhook_secret'

/** What is stored in place of a credential. */
export type FreshCredential =
  | { type: 'secret' | 'api'; salt: string; hash: string; preview: string }
  | { type: 'webhook_secret'; value: string }

const hexDigits = 48
const saltBytes = 16

const credentialPatterns = {
  client: /^ph_(?:live|test)_client_[0-9a-f]{48}$/,
  secret: /^ph_(?:live|test)_secret_[0-9a-f]{48}$/,
  api: /^ph_(?:live|test)_api_[0-9a-f]{48}$/,
} as const satisfies Record<CredentialKind, RegExp>

/** Whether the value could be a credential of that kind. Costs next to nothing, so that rubbish is refused early. */
export const hasCredentialFormat = (kind: CredentialKind, value: string | undefined): value is string =>
  value !== undefined && credentialPatterns[kind].test(value)

/** 192 random bits behind a prefix that tells people and secret scanners what it is. The environment is part of it. */
export const makeCredential = (kind: 'secret' | 'api', environment: Environment, random: Random) =>
  `ph_${environment}_${kind}_${randomHex(hexDigits / 2, random)}`

/** The 48 digits are valid base64 too, which is how Standard Webhooks libraries read what follows `whsec_`. */
export const makeWebhookSecret = (random: Random) => `whsec_${randomHex(hexDigits / 2, random)}`

/**
 * The client ID of an application. It is stored only as a hash and can be told at any time all the same, as it follows
 * from the application's id and a key that is not in the database.
 */
export function deriveClientId(
  keys: Pick<Keys, 'clientId'>,
  environment: Environment,
  applicationId: string,
): string {
  const mac = hmac(keys.clientId).update(`client-id:${applicationId}`).digest('hex')
  return `ph_${environment}_client_${mac.slice(0, hexDigits)}`
}

export function hashCredential(value: string, random: Random): StoredCredential {
  const salt = randomHex(saltBytes, random)
  return { salt, hash: digestWithSalt(value, salt).toString('hex') }
}

/** Takes as long for a wrong value as for the right one. */
export const matchesCredential = (value: string, stored: StoredCredential) =>
  timingSafeEqual(digestWithSalt(value, stored.salt), Uint8Array.fromHex(stored.hash))

/** Spends what a comparison costs, where there is nothing to compare with. */
export const compareWithDummy = (value: string) => void matchesCredential(value, dummyCredential)

const dummyCredential: StoredCredential = { salt: '00'.repeat(saltBytes), hash: '00'.repeat(32) }

/** The first and the last four hex digits: all of a secret that is ever shown again, and what an API key is found by. */
export const previewCredential = (value: string) => value.slice(-hexDigits, 4 - hexDigits) + value.slice(-4)

/** @param preview made by previewCredential; gives `ph_live_secret_1a2b****9f0e` */
export const maskCredential = (kind: CredentialKind, environment: Environment, preview: string) =>
  `ph_${environment}_${kind}_${preview.slice(0, 4)}****${preview.slice(4)}`

/** Makes all credentials of a new application. */
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

/** Makes the successor of one credential. */
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
