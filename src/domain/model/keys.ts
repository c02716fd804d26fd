import { createHmac, hkdfSync } from 'node:crypto'

/** Sub-keys of the master key, one for each purpose, so that no two uses ever share a key. */
export type Keys = {
  /** Derives codes. */
  code: Buffer
  /** Hashes codes for comparison. */
  codeHash: Buffer
  /** Derives client IDs. */
  clientId: Buffer
  /** Hashes phone numbers where a table needs to find one without holding it. */
  phone: Buffer
  /** Makes what stands for a phone number in old records. */
  pseudonym: Buffer
  /** Hashes what the guard counts by. */
  guard: Buffer
  /** Derives the tokens of callback URLs. */
  callback: Buffer
  /** Encrypts the private keys of the built-in identity provider. */
  signingKey: Buffer
  /** Encrypts the values of the headers that webhook endpoints ask for. */
  webhookHeader: Buffer
  /** Derives the successors of refresh tokens. */
  refreshToken: Buffer
}

export const masterKeyBytes = 32

/** @param masterKey 32 random bytes that never stand in the database or a backup */
export function deriveKeys(masterKey: Uint8Array): Keys {
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', masterKey, '', `otpd ${purpose} v1`, 32))
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
  }
}

/** What the database keeps of the master key: enough to notice a wrong one, nothing to find the right one. */
export const masterKeyCheck = (masterKey: Uint8Array) =>
  Buffer.from(hkdfSync('sha256', masterKey, '', 'otpd check v1', 16)).toString('hex')

/** HMAC-SHA256 of what `update` is given. */
export const hmac = (key: Uint8Array) => createHmac('sha256', key)

/** A phone number as a table knows it that only counts: the same number gives the same text, and nothing leads back. */
export const hashPhone = (keys: Keys, phone: string) => hmac(keys.phone).update(phone).digest('base64url')
