import { pageLimitDefault, type Page, type PageRequest } from '../domain/model/pagination.ts'

/** @param query already checked against `pageQuery` */
export const readPage = (query: { limit?: string; cursor?: string }): PageRequest => ({
  limit: query.limit === undefined ? pageLimitDefault : Number(query.limit),
  cursor: query.cursor,
})

export const pageResponse = <T, U>(page: Page<T>, present: (item: T) => U) => ({
  data: page.items.map(present),
  pagination: { limit: page.limit, nextCursor: page.nextCursor },
})

export const formatTime = (ms: number) => new Date(ms).toISOString()

export const formatTimeOrNull = (ms: number | null) => (ms === null ? null : formatTime(ms))
