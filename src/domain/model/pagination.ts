import { ServiceError } from './errors.ts'
import { isId, type IdPrefix } from './ids.ts'

/** Which part of a list: the newest `limit` rows older than the one that the cursor names. */
export type PageRequest = { limit: number; cursor?: string | undefined }

export type Page<T> = { items: T[]; nextCursor: string | null; limit: number }

export const pageLimitDefault = 50
export const pageLimitMax = 200

/** Opaque to callers, so that what a list is sorted by may change. It grants nothing: every query names the caller. */
export const encodeCursor = (position: string) => Buffer.from(`1:${position}`).toString('base64url')

/** @throws INVALID_ARGUMENT (CURSOR_INVALID) it was not made by encodeCursor */
export function decodeCursor(cursor: string): string {
  const text = Buffer.from(cursor, 'base64url').toString('utf8')
  const position = /^1:([0-9a-z_]{1,64})$/.exec(text)?.[1]
  if (position === undefined || encodeCursor(position) !== cursor) throw invalidCursor()
  return position
}

/**
 * Where a page of a list that is sorted by id begins: behind that id. Undefined for the first page.
 *
 * @throws INVALID_ARGUMENT (CURSOR_INVALID) the cursor was not given out, or by a list of something else
 */
export function readIdCursor({ cursor }: PageRequest, prefix: IdPrefix): string | undefined {
  if (cursor === undefined) return undefined
  const position = decodeCursor(cursor)
  if (!isId(prefix, position)) throw invalidCursor()
  return position
}

/** The same for a list that is sorted by numbers. */
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
 * Cuts one page from rows that were read with a limit of one more, which tells whether another page follows.
 *
 * @param getPosition what the list is sorted by
 * @param scannedTo the last position that was looked at, where older ones were not: the next page begins behind it,
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
