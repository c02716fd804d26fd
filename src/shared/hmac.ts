import { timingSafeEqual } from 'node:crypto'

/** Hashers that have read their key, which costs as much as the rest of a short HMAC. */
const hashers = new WeakMap<Uint8Array, Bun.CryptoHasher>()

/** Starts an HMAC-SHA256. @param key never changes */
export function hmac(key: Uint8Array): Bun.CryptoHasher {
  const known = hashers.get(key)
  if (known) return known.copy()
  const hasher = new Bun.CryptoHasher('sha256', key)
  hashers.set(key, hasher)
  return hasher.copy()
}

/** Compares signatures or hashes in constant time, so that timing does not reveal a partial match. */
export const timingSafeEqualBytes = (actual: Uint8Array, expected: Uint8Array): boolean =>
  actual.byteLength === expected.byteLength && timingSafeEqual(actual, expected)
