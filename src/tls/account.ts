import { join } from 'node:path'
import { exportJWK, importJWK } from 'jose'
import { readJsonFile, writePrivateJson } from './private-file.ts'

/** Generates an ECDSA key on P-256. */
export const generateKey = (): Promise<CryptoKeyPair> =>
  crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])

/** Reads the account key of a folder. If it cannot be read, a new one is made: a new account costs nothing. */
export async function openAccountKey(folder: string): Promise<CryptoKeyPair> {
  const path = join(folder, 'account.json')
  const saved = readJsonFile(path)
  if (saved) {
    const { d, ...publicKey } = saved
    const keys = await Promise.all(
      [saved, publicKey].map((jwk) => importJWK(jwk, 'ES256', { extractable: true })),
    ).catch(() => [])
    const [privateKey, verifyingKey] = keys
    if (typeof d === 'string' && privateKey instanceof CryptoKey && verifyingKey instanceof CryptoKey)
      return { privateKey, publicKey: verifyingKey }
  }
  const pair = await generateKey()
  writePrivateJson(path, await exportJWK(pair.privateKey))
  return pair
}
