import { deriveKeys, masterKeyBytes } from '../../src/domain/model/keys.ts'

/** Keys of every test service: fixed, so that several can share a database. */
export const testKeys = deriveKeys(new Uint8Array(masterKeyBytes).fill(7))
