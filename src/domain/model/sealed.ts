import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { Random } from './random.ts'

const ivBytes = 12
const tagBytes = 16

/**
 * Encrypts a text with AES-256-GCM for a database column.
 *
 * @param key 32 bytes, used for this purpose only
 * @param context identifies the place of storage (additional authenticated data): a copy moved elsewhere does
 *   not decrypt
 */
export function seal(key: Uint8Array, context: string, text: string, random: Random): string {
  const iv = new Uint8Array(ivBytes)
  random(iv)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
}

/** Decrypts a sealed text. @throws Error it was sealed with another key or context, or was changed since */
export function unseal(key: Uint8Array, context: string, stored: string): string {
  const bytes = Buffer.from(stored, 'base64url')
  // The last character may have bits that no byte uses.
  if (bytes.toString('base64url') !== stored) throw new Error('not base64url')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes), {
    authTagLength: tagBytes,
  })
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes))
  const sealed = bytes.subarray(ivBytes + tagBytes)
  return Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8')
}
