import type { ApiResponse } from '../client/api.ts'

const pagesMax = 10

/** Newest first. `isCut` where the search ended before the list did, with fewer than were wanted. */
export type NewestRows<Row> = { rows: Row[]; isTruncated: boolean }

/**
 * The newest rows of a list that is narrowed. The server looks through so many rows a page, and a page may hold fewer
 * than were asked for, or none, with more behind it; ten pages are asked for at the most.
 */
export async function newestRows<Row>(
  limit: number,
  loadPage: (page: {
    limit: string
    cursor?: string
  }) => Promise<Pick<ApiResponse<Row[]>, 'data' | 'nextCursor'>>,
): Promise<NewestRows<Row>> {
  const rows: Row[] = []
  let cursor: string | null = null
  for (let pageCount = 0; pageCount < pagesMax; pageCount++) {
    const page: Pick<ApiResponse<Row[]>, 'data' | 'nextCursor'> = await loadPage({
      limit: String(limit),
      ...(cursor !== null && { cursor }),
    })
    rows.push(...page.data)
    cursor = page.nextCursor
    if (cursor === null || rows.length >= limit) return { rows: rows.slice(0, limit), isTruncated: false }
  }
  return { rows, isTruncated: true }
}

/** A long search is not made every two seconds. */
export const searchIntervalMs = ({ isTruncated }: NewestRows<unknown>) => (isTruncated ? 20_000 : 2000)
