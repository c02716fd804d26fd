import { ServiceError } from './errors.ts'
import { isId, type IdPrefix } from './ids.ts'

/** Keyset pagination: the newest `limit` rows older than the cursor's. */
export type PageRequest = { limit: number; cursor?: string | undefined }

export type Page<T> = { items: T[]; nextCursor: string | null; limit: number }

export const pageLimitDefault = 50
export const pageLimitMax = 200

/**
 * Encodes a cursor, opaque so that sort keys can change. It grants no access: every query also filters by
 * owner.
 */
export const encodeCursor = (position: string) => Buffer.from(`1:${position}`).toString('base64url')

/** Reverses `encodeCursor`. @throws INVALID_ARGUMENT (CURSOR_INVALID) for any other text */
export function decodeCursor(cursor: string): string {
  const text = Buffer.from(cursor, 'base64url').toString('utf8')
  const position = /^1:([0-9a-z_]{1,64})$/.exec(text)?.[1]
  if (position === undefined || encodeCursor(position) !== cursor) throw invalidCursor()
  return position
}

/**
 * Reads the cursor of a list that is sorted by id. Undefined for the first page.
 *
 * @throws INVALID_ARGUMENT (CURSOR_INVALID) when the cursor is malformed or belongs to a list of other
 *   resources
 */
export function readIdCursor({ cursor }: PageRequest, prefix: IdPrefix): string | undefined {
  if (cursor === undefined) return undefined
  const position = decodeCursor(cursor)
  if (!isId(prefix, position)) throw invalidCursor()
  return position
}

/** As `readIdCursor`, for a list that is sorted by sequence number. */
export function readSeqCursor({ cursor }: Pick<PageRequest, 'cursor'>): number | undefined {
  if (cursor === undefined) return undefined
  const position = decodeCursor(cursor)
  if (!/^[1-9]\d{0,14}$/.test(position)) throw invalidCursor()
  return Number(position)
}

const invalidCursor = () =>
  new ServiceError(
    'INVALID_ARGUMENT',
    'The cursor is invalid for this list. Use the nextCursor of the previous page, or omit it.',
    {
      reason: 'CURSOR_INVALID',
      details: [
        {
          in: 'query',
          path: 'cursor',
          code: 'CURSOR_INVALID',
          message: 'Expected the nextCursor of the previous page. Omit it to start from the first page.',
        },
      ],
    },
  )

/**
 * Cuts one page from rows that were read with `limit + 1`; the extra row shows that another page follows.
 *
 * @param getPosition reads the sort key
 * @param scannedTo the last position scanned, if the scan stopped early: the next page begins after it,
 *   though this one may be short or empty
 */
export function toPage<T>(
  rows: T[],
  limit: number,
  getPosition: (row: T) => string,
  scannedTo?: string,
): Page<T> {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  const hasMore = rows.length > limit && last !== undefined
  const nextPosition = hasMore ? getPosition(last) : scannedTo
  return { items, limit, nextCursor: nextPosition === undefined ? null : encodeCursor(nextPosition) }
}

/**
 * Most rows that one page of a filtered list scans. Few or none may match, and scanning a long history would
 * block all other calls. The page's cursor resumes where the scan stopped; followers of the log, which have
 * no such cursor, scan as many rows at a time.
 */
export const scanRowsMax = 2000
