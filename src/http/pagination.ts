import { pageLimitDefault, type Page, type PageRequest } from '../domain/model/pagination.ts'

/** Converts a query that was validated against `pageQuery` into a page request. */
export const readPage = (query: { limit?: string; cursor?: string }): PageRequest => ({
  limit: query.limit === undefined ? pageLimitDefault : Number(query.limit),
  cursor: query.cursor,
})

/** Builds the response body of a list. */
export const pageResponse = <T, U>(page: Page<T>, present: (item: T) => U) => ({
  data: page.items.map(present),
  pagination: { limit: page.limit, nextCursor: page.nextCursor },
})

/** Formats milliseconds since the epoch as RFC 3339 in UTC. */
export const formatTime = (ms: number) => new Date(ms).toISOString()

/** As `formatTime`; null stays null. */
export const formatTimeOrNull = (ms: number | null) => (ms === null ? null : formatTime(ms))
