import type { Answer, Api } from './api.ts'
import type { LogEntry } from './resources.ts'

export type LogSearch = {
  appId?: string | undefined
  type?: string | undefined
  /** Only entries of phones that end so. */
  phoneEnd?: string | undefined
  /** Only entries from then on, in milliseconds since the epoch. */
  sinceMs?: number | undefined
  limit: number
}

export type RecentLog = {
  /** Oldest first. */
  entries: LogEntry[]
  /** The newest entry that was looked at; going on after it misses nothing. */
  newestId: string | null
  /** The body of the API. */
  body: string
  /** The search ended before the log did. */
  isCut: boolean
}

const pagesMax = 50
const pageLimitMax = 200

export const isWanted = ({ phone, at }: LogEntry, { phoneEnd, sinceMs }: LogSearch) =>
  (phoneEnd === undefined || (phone?.endsWith(phoneEnd) ?? false)) &&
  (sinceMs === undefined || Date.parse(at) >= sinceMs)

/**
 * The most recent entries that are wanted. The server knows application and type; phone and time are looked for here,
 * through at most fifty pages.
 */
export async function findRecent(api: Api, search: LogSearch): Promise<RecentLog> {
  const { appId, type, phoneEnd, sinceMs, limit } = search
  const isPlain = phoneEnd === undefined && sinceMs === undefined
  const pageLimit = isPlain ? Math.min(limit, pageLimitMax) : pageLimitMax
  let entries: LogEntry[] = []
  let first: Answer<LogEntry[]> | undefined
  let cursor: string | null = null
  let newestId: string | null = null
  let isOver = false
  for (let pages = 0; pages < pagesMax && !isOver; pages++) {
    const page: Answer<LogEntry[]> = await api.asDeveloper('GET', '/v1/logs', {
      query: { limit: String(pageLimit), appId, type, ...(cursor !== null && { cursor }) },
    })
    first ??= page
    // The first page may hold nothing of the type, with more behind it.
    newestId ??= page.data.at(-1)?.id ?? null
    entries = [...page.data.filter((entry) => isWanted(entry, search)), ...entries]
    cursor = page.nextCursor
    const [oldest] = page.data
    const isBefore = sinceMs !== undefined && oldest !== undefined && Date.parse(oldest.at) < sinceMs
    isOver = cursor === null || isBefore || entries.length >= limit
  }
  entries = entries.slice(-limit)
  const isWhole = isPlain && first !== undefined && limit <= pageLimitMax
  return {
    entries,
    newestId,
    body:
      isWhole && first
        ? first.body
        : JSON.stringify({ data: entries, pagination: { limit, nextCursor: null } }),
    isCut: !isOver,
  }
}
