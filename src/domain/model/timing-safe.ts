import { timingSafeEqual } from 'node:crypto'

/** Compares signatures or hashes in constant time, so that timing does not reveal a partial match. */
export const timingSafeEqualBytes = (actual: Uint8Array, expected: Uint8Array): boolean =>
  actual.byteLength === expected.byteLength && timingSafeEqual(actual, expected)
