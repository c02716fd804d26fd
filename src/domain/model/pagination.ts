import { ServiceError } from './errors.ts'
import { isId, type IdPrefix } from './ids.ts'

/**
 * Keyset pagination: the newest `limit` rows older than the cursor's. Here a cursor is the plain position, an id or a
 * sequence number; callers of the API get it encrypted. It grants no access: every query also filters by owner.
 */
export type PageRequest = { limit: number; cursor?: string | undefined }

export type Page<T> = { items: T[]; nextCursor: string | null; limit: number }

export const pageLimitDefault = 50
export const pageLimitMax = 200

/**
 * Reads the cursor of a list that is sorted by id. Undefined for the first page.
 *
 * @throws INVALID_ARGUMENT (CURSOR_INVALID) when it is no id of this kind
 */
export function readIdCursor({ cursor }: PageRequest, prefix: IdPrefix): string | undefined {
  if (cursor !== undefined && !isId(prefix, cursor)) throw invalidCursor()
  return cursor
}

/** As `readIdCursor`, for a list that is sorted by sequence number. */
export function readSeqCursor({ cursor }: Pick<PageRequest, 'cursor'>): number | undefined {
  if (cursor === undefined) return undefined
  if (!/^[1-9]\d{0,14}$/.test(cursor)) throw invalidCursor()
  return Number(cursor)
}

/** INVALID_ARGUMENT (CURSOR_INVALID). */
export const invalidCursor = () =>
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
 */
export function toPage<T>(rows: T[], limit: number, getPosition: (row: T) => string): Page<T> {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  const hasMore = rows.length > limit && last !== undefined
  return { items, limit, nextCursor: hasMore ? getPosition(last) : null }
}
