import type { Command } from 'commander'
import type { ApiResponse } from './api.ts'
import { usageError } from '../terminal/errors.ts'
import type { Output } from '../terminal/output.ts'

export type ListOptions = { limit?: string; cursor?: string }

/** Adds the paging options of every list command. */
export const addListOptions = (command: Command) =>
  command
    .option('--limit <number>', 'maximum number of items, 1 to 200 (default 50)')
    .option('--cursor <cursor>', 'start after this cursor, from the previous page')

/**
 * Converts the paging options to query parameters.
 *
 * @throws usage error when --limit is not a number
 */
export function listQuery({ limit, cursor }: ListOptions) {
  if (limit !== undefined && !/^\d+$/.test(limit)) throw usageError('--limit must be a number from 1 to 200.')
  return { ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) }
}

/** Notes that there are more pages: people could take the first page for the whole list. */
export function printNextPageHint(output: Output, { nextCursor }: ApiResponse<unknown>) {
  if (nextCursor !== null)
    output.note(output.paintError.dim(`More results: --limit 200, or\n  --cursor ${nextCursor}`))
}

/** Items that are read at most to find those since a time. */
const sinceItemsMax = 10_000

/**
 * Reads a page of a list that is newest first; with `sinceMs` all items created since then, up to the limit of the query.
 *
 * @param sinceMs milliseconds since the epoch
 */
export async function readSince<
  T extends { createdAt: string },
  Q extends { limit?: string; cursor?: string },
>(
  loadPage: (query: Q) => Promise<ApiResponse<T[]>>,
  query: Q,
  sinceMs: number | undefined,
): Promise<ApiResponse<T[]>> {
  if (sinceMs === undefined) return await loadPage(query)
  const limit = query.limit === undefined ? sinceItemsMax : Number(query.limit)
  const items: T[] = []
  let { cursor } = query
  for (;;) {
    const pageQuery = { ...query, limit: '200', ...(cursor !== undefined && { cursor }) }
    const page = await loadPage(pageQuery)
    const recent = page.data.filter(({ createdAt }) => Date.parse(createdAt) >= sinceMs)
    items.push(...recent)
    const isEnd = page.nextCursor === null || recent.length < page.data.length || items.length >= limit
    if (isEnd) break
    cursor = page.nextCursor ?? undefined
  }
  const data = items.slice(0, limit)
  const pagination = { limit: data.length, nextCursor: null }
  return { data, nextCursor: null, body: JSON.stringify({ data, pagination }) }
}
