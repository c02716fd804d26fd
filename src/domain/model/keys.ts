import { createHmac, hkdfSync } from 'node:crypto'

/** Subkeys of the master key: one per purpose, so that no two uses share a key. */
export type Keys = {
  /** Derives codes. */
  code: Buffer
  /** Hashes codes for comparison. */
  codeHash: Buffer
  /** Derives client IDs. */
  clientId: Buffer
  /** Hashes phone numbers for tables that look them up without storing them. */
  phone: Buffer
  /** Derives the pseudonyms of phone numbers in old records. */
  pseudonym: Buffer
  /** Hashes the phone prefixes and client addresses that the guard counts by. */
  guard: Buffer
  /** Derives the tokens of callback URLs. */
  callback: Buffer
  /** Encrypts the private keys of the built-in identity provider. */
  signingKey: Buffer
  /** Encrypts the values of custom webhook headers. */
  webhookHeader: Buffer
  /** Derives the successors of refresh tokens. */
  refreshToken: Buffer
  /** Hashes the contexts of end users: networks and device IDs. */
  context: Buffer
  /** Encrypts sensitive columns at rest. */
  seals: SealKeys
  /** Hashes the bodies of idempotent calls. */
  idempotency: Buffer
  /** Encrypts pagination cursors. */
  cursor: Buffer
  /** Authenticates the ends of the audit chains. */
  audit: Buffer
}

/** Versions of the key that seals columns. A sealed text names the version that it was sealed with. */
export type SealKeys = {
  /** Version that new texts are sealed with. */
  version: number
  /** Finds the key of a version; undefined if it is unknown. */
  find(version: number): Buffer | undefined
}

export const masterKeyBytes = 32

/**
 * Derives all subkeys with HKDF-SHA256.
 *
 * @param masterKey 32 random bytes, never stored in the database or a backup
 */
export function deriveKeys(masterKey: Uint8Array): Keys {
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', masterKey, '', `otpd ${purpose} v1`, 32))
  const sealKey = derive('seals')
  return {
    code: derive('code'),
    codeHash: derive('code hash'),
    clientId: derive('client id'),
    phone: derive('phone'),
    pseudonym: derive('pseudonym'),
    guard: derive('guard'),
    callback: derive('callback'),
    signingKey: derive('signing key'),
    webhookHeader: derive('webhook header'),
    refreshToken: derive('refresh token'),
    context: derive('context'),
    seals: { version: 1, find: (version) => (version === 1 ? sealKey : undefined) },
    idempotency: derive('idempotency'),
    cursor: derive('cursor'),
    audit: derive('audit'),
  }
}

/**
 * Derives the check value that the database stores: it detects a wrong master key and does not reveal the
 * right one.
 */
export const masterKeyCheck = (masterKey: Uint8Array) =>
  Buffer.from(hkdfSync('sha256', masterKey, '', 'otpd check v1', 16)).toString('hex')

/** Starts an HMAC-SHA256. */
export const hmac = (key: Uint8Array) => createHmac('sha256', key)

/** Keyed, irreversible hash of a phone number, for tables that only count by phone. */
export const hashPhone = (keys: Keys, phone: string) => hmac(keys.phone).update(phone).digest('base64url')
