import type { ApiResponse } from '../client/api.ts'

const pagesMax = 10

/** Rows, newest first. `isTruncated` if the search stopped before the end of the list with fewer rows than requested. */
export type NewestRows<Row> = { rows: Row[]; isTruncated: boolean }

/**
 * Loads the newest rows of a filtered list. The server scans a limited number of rows per page, so a page may hold fewer
 * rows than requested, or none, and still have a next page. Loads at most 10 pages.
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

/** Poll interval of such a list: slower after a search that needed every page. */
export const searchIntervalMs = ({ isTruncated }: NewestRows<unknown>) => (isTruncated ? 20_000 : 2000)
