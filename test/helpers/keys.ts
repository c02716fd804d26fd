import { hkdfSync } from 'node:crypto'
import { createKeyring, dataKeysOf010, masterKeyBytes, type Keys } from '../../src/domain/model/keys.ts'

/** Derives a complete set of keys from one secret. */
export function deriveKeys(secret: Uint8Array): Keys {
  const fill = (bytes: Uint8Array) =>
    bytes.set(new Uint8Array(hkdfSync('sha256', secret, '', 'otpd data key v1', bytes.length)))
  return createKeyring(dataKeysOf010(secret, fill)).keys
}

/** Keys of every test service: fixed, so that several can share a database. */
export const testKeys = deriveKeys(new Uint8Array(masterKeyBytes).fill(7))
