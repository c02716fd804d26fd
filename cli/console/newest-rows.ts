import type { Answer } from '../client/api.ts'

const pagesMax = 10

/** Newest first. `isCut` where the search ended before the list did, with fewer than were wanted. */
export type NewestRows<Row> = { rows: Row[]; isCut: boolean }

/**
 * The newest rows of a list that is narrowed. The server looks through so many rows a page, and a page may hold fewer
 * than were asked for, or none, with more behind it; ten pages are asked for at the most.
 */
export async function newestRows<Row>(
  limit: number,
  ask: (page: { limit: string; cursor?: string }) => Promise<Pick<Answer<Row[]>, 'data' | 'nextCursor'>>,
): Promise<NewestRows<Row>> {
  const rows: Row[] = []
  let cursor: string | null = null
  for (let pages = 0; pages < pagesMax; pages++) {
    const page: Pick<Answer<Row[]>, 'data' | 'nextCursor'> = await ask({
      limit: String(limit),
      ...(cursor !== null && { cursor }),
    })
    rows.push(...page.data)
    cursor = page.nextCursor
    if (cursor === null || rows.length >= limit) return { rows: rows.slice(0, limit), isCut: false }
  }
  return { rows, isCut: true }
}

/** A long search is not made every two seconds. */
export const searchMs = ({ isCut }: NewestRows<unknown>) => (isCut ? 20_000 : 2000)
