import { createPublicKey, verify } from 'node:crypto'
import type { Callback } from '../kit/provider.ts'
import { isWithinTolerance } from '../kit/signature-checks.ts'

/** Maximum age of a signed callback. */
const toleranceSeconds = 300

export const telnyxPublicKeyField = {
  description: 'the public key that signs callbacks (Keys & Credentials); without it there are no receipts',
  pattern: /^[A-Za-z0-9+/]{43}=$/,
  example: 'j3EApzZjNqVQmSohBbuFAIVIt25PWACpUXpNBkba9xo=',
} as const

/**
 * Creates the check of Telnyx's Ed25519 signature over `{timestamp}|{body}`.
 *
 * @param base64 the raw 32-byte key that Telnyx shows
 */
export function createTelnyxSignatureCheck(base64: string): (callback: Callback, nowMs: number) => boolean {
  const x = Buffer.from(base64, 'base64').toString('base64url')
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })
  return ({ headers, body }, nowMs) => {
    const timestamp = headers['telnyx-timestamp'] ?? ''
    const signature = Buffer.from(headers['telnyx-signature-ed25519'] ?? '', 'base64')
    if (!isWithinTolerance(timestamp, nowMs, toleranceSeconds)) return false
    return verify(null, Buffer.from(`${timestamp}|${body}`), key, signature)
  }
}
