import { createHash } from 'node:crypto'
import type { Random } from './random.ts'

/**
 * A secret that only its holder knows: the prefix, which says what it is for, and random bytes in base64url.
 *
 * @param byteCount at least 16: such a secret cannot be guessed, so that a plain hash may stand for it (NIST SP
 *   800-63B §3.1.2.2)
 */
export function newToken(prefix: string, byteCount: number, random: Random): string {
  const bytes = new Uint8Array(byteCount)
  random(bytes)
  return prefix + Buffer.from(bytes).toString('base64url')
}

/** What the database keeps of a token. */
export const hashToken = (token: string) => createHash('sha256').update(token).digest('base64url')
