import { createHash } from 'node:crypto'
import { invalidRequest } from '../domain/model/errors.ts'
import { indexHashes, type Keys } from '../domain/model/keys.ts'
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
export type ReadIdempotency = (
  headers: Record<string, string | undefined>,
  caller: string,
  route: string,
  body: unknown,
) => IdempotencyScope | undefined

/** Creates the reader of the `Idempotency-Key` header. @param keys hash the body, so that it cannot be guessed from a copy */
export const createIdempotencyReader =
  (keys: Pick<Keys, 'idempotency'>): ReadIdempotency =>
  (headers, caller, route, body) => {
    const header = headers['idempotency-key']
    if (header === undefined) return undefined
    const match = keyPattern.exec(header)
    const key = match?.[1] ?? match?.[2]
    if (key === undefined) {
      const message = 'Expected 1 to 255 visible ASCII characters, bare or as a quoted string.'
      const detail = { in: 'header', path: 'idempotency-key', code: 'INVALID', message } as const
      throw invalidRequest([detail], 'IDEMPOTENCY_KEY_INVALID')
    }
    // Stored as it is by 0.1.0. The keyed hash is made of it, so that both forms cost one pass over the body.
    const plainHash = createHash('sha256').update(JSON.stringify(body)).digest('base64url')
    const [bodyHash = plainHash, ...earlier] = indexHashes(keys.idempotency, plainHash)
    return { caller, route, key, bodyHash, earlierBodyHashes: [...earlier, plainHash] }
  }

/** Marks a replayed response with `Idempotency-Replayed`. */
export function setReplayedHeader(headers: Record<string, string | number>, isReplayed: boolean) {
  if (isReplayed) headers['idempotency-replayed'] = 'true'
}
