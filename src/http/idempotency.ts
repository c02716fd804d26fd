import { createHash } from 'node:crypto'
import { invalidRequest } from '../domain/model/errors.ts'
import type { IdempotencyScope } from '../domain/model/idempotency.ts'

/** Up to 255 visible ASCII characters, bare or as the quoted string of the IETF draft. */
const keyPattern = /^(?:"([\x21\x23-\x7e]{1,255})"|([\x21\x23-\x7e]{1,255}))$/

/**
 * Reads the `Idempotency-Key` header.
 *
 * @param caller id of the developer or application
 * @returns undefined without the header
 * @throws INVALID_ARGUMENT (IDEMPOTENCY_KEY_INVALID)
 */
export function idempotencyScope(
  headers: Record<string, string | undefined>,
  caller: string,
  route: string,
  body: unknown,
): IdempotencyScope | undefined {
  const header = headers['idempotency-key']
  if (header === undefined) return undefined
  const match = keyPattern.exec(header)
  const key = match?.[1] ?? match?.[2]
  if (key === undefined) {
    const message = 'Expected 1 to 255 visible ASCII characters, bare or as a quoted string.'
    const detail = { in: 'header', path: 'idempotency-key', code: 'INVALID', message } as const
    throw invalidRequest([detail], 'IDEMPOTENCY_KEY_INVALID')
  }
  return {
    caller,
    route,
    key,
    bodyHash: createHash('sha256').update(JSON.stringify(body)).digest('base64url'),
  }
}

/** Marks a replayed response with `Idempotency-Replayed`. */
export function setReplayedHeader(headers: Record<string, string | number>, isReplayed: boolean) {
  if (isReplayed) headers['idempotency-replayed'] = 'true'
}
