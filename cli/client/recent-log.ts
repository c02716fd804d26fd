import type { ApiResponse, Api } from './api.ts'
import type { LogEntry } from './resources.ts'
import type { Environment } from '../../src/shared/otp-values.ts'

export type LogSearch = {
  appId?: string | undefined
  /** Only entries of this OTP request. */
  requestId?: string | undefined
  environment?: Environment | undefined
  type?: string | undefined
  /** Only entries of phone numbers that end with these digits. */
  phoneEnd?: string | undefined
  /** Only entries from this time on, in milliseconds since the epoch. */
  sinceMs?: number | undefined
  limit: number
}

type RecentLog = {
  /** Oldest first. */
  entries: LogEntry[]
  /** Newest entry that was found, or a cursor before the first one; following the log after it misses nothing. */
  newestId: string
  /** Body for --json: that of the API if one page holds the result, otherwise assembled in its shape. */
  body: string
  /** The search stopped at its page limit, before the end of the log. */
  isTruncated: boolean
}

/** A cursor before the first entry of any log. */
const logStart = `evt_${'0'.repeat(26)}`

const pagesMax = 50
const pageLimitMax = 200

/** Checks an entry against the filters that the server or its stream does not support: request, phone and time. */
export const matchesSearch = (entry: LogEntry, { requestId, phoneEnd, sinceMs }: LogSearch) =>
  (requestId === undefined || entry.requestId === requestId) &&
  (phoneEnd === undefined || (entry.phone?.endsWith(phoneEnd) ?? false)) &&
  (sinceMs === undefined || Date.parse(entry.at) >= sinceMs)

/**
 * Finds the most recent matching entries. The server filters by application and type; phone and time are filtered
 * here, over at most fifty pages.
 */
export async function findRecent(api: Api, search: LogSearch): Promise<RecentLog> {
  const { appId, environment, requestId, type, phoneEnd, sinceMs, limit } = search
  const isPlain = phoneEnd === undefined && sinceMs === undefined
  const pageLimit = isPlain ? Math.min(limit, pageLimitMax) : pageLimitMax
  let entries: LogEntry[] = []
  let firstPage: ApiResponse<LogEntry[]> | undefined
  let cursor: string | null = null
  let newestId: string | null = null
  let isDone = false
  for (let pageCount = 0; pageCount < pagesMax && !isDone; pageCount++) {
    const page: ApiResponse<LogEntry[]> = await api.asDeveloper('GET', '/v1/logs', {
      query: {
        limit: String(pageLimit),
        appId,
        environment,
        requestId,
        type,
        ...(cursor !== null && { cursor }),
      },
    })
    firstPage ??= page
    newestId ??= page.data.at(-1)?.id ?? null
    entries = [...page.data.filter((entry) => matchesSearch(entry, search)), ...entries]
    cursor = page.nextCursor
    const [oldest] = page.data
    const isBefore = sinceMs !== undefined && oldest !== undefined && Date.parse(oldest.at) < sinceMs
    isDone = cursor === null || isBefore || entries.length >= limit
  }
  entries = entries.slice(-limit)
  const isSinglePage = isPlain && firstPage !== undefined && limit <= pageLimitMax
  return {
    entries,
    newestId: newestId ?? logStart,
    body:
      isSinglePage && firstPage
        ? firstPage.body
        : JSON.stringify({ data: entries, pagination: { limit, nextCursor: null } }),
    isTruncated: !isDone,
  }
}
