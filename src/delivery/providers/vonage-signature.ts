import { createHash, createHmac } from 'node:crypto'
import { parseJson, textAt } from '../kit/json.ts'
import type { Callback } from '../kit/provider.ts'
import { timingSafeEqualBytes, isWithinTolerance } from '../kit/signature-checks.ts'
import { hourMs, secondMs } from '../../shared/durations.ts'

const receiptMaxAgeSeconds = hourMs / secondMs

/**
 * Checks the JWT (RFC 7519, HS256), whose `payload_hash` is the SHA-256 of the body. It has no `exp`, so
 * `iat` limits its age. See https://developer.vonage.com/en/getting-started/concepts/webhooks.
 */
export function isVonageSigned({ headers, body }: Callback, secret: string, nowMs: number): boolean {
  const token = /^Bearer (([\w-]+)\.([\w-]+))\.([\w-]+)$/i.exec(headers['authorization'] ?? '')
  const [, signedText = '', header = '', payload = '', signature = ''] = token ?? []
  const readPart = (part: string) => parseJson(Buffer.from(part, 'base64url').toString())
  if (textAt(readPart(header), 'alg') !== 'HS256') return false
  const expected = createHmac('sha256', secret).update(signedText).digest()
  if (!timingSafeEqualBytes(Buffer.from(signature, 'base64url'), expected)) return false
  const claims = readPart(payload)
  const hash = createHash('sha256').update(body).digest()
  if (!timingSafeEqualBytes(Buffer.from(textAt(claims, 'payload_hash') ?? '', 'hex'), hash)) return false
  return isWithinTolerance(textAt(claims, 'iat') ?? '', nowMs, receiptMaxAgeSeconds)
}
