import { createHash } from 'node:crypto'
import type { Random } from './random.ts'

/**
 * Generates a secret token: a prefix that names its purpose, and random bytes in base64url.
 *
 * @param byteCount at least 16, so that a plain hash without salt is enough to store it (NIST SP 800-63B
 *   §3.1.2.2)
 */
export function newToken(prefix: string, byteCount: number, random: Random): string {
  const bytes = new Uint8Array(byteCount)
  random(bytes)
  return prefix + Buffer.from(bytes).toString('base64url')
}

/** Hashes a token for storage. */
export const hashToken = (token: string) => createHash('sha256').update(token).digest('base64url')
