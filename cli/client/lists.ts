import { Option, type Command } from 'commander'
import type { ApiResponse } from './api.ts'
import { usageError } from '../terminal/errors.ts'
import type { Output } from '../terminal/output.ts'

export type ListOptions = { limit?: string; cursor?: string; all?: true }

/** Adds the paging options of every list command. */
export const addListOptions = <C extends Command>(command: C): C =>
  command
    .option('--limit <number>', 'maximum number of items, 1 to 200 (default 50)')
    .addOption(new Option('--all', 'every item, not only the first page').conflicts(['limit', 'cursor']))
    .option('--cursor <cursor>', 'start after this cursor: pagination.nextCursor of --json')

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
    output.note(output.paintError.dim('There are more: --all shows every item, --limit 200 the first 200.'))
}

/** Items that are read at most to find those since a time. */
const sinceItemsMax = 10_000

type Page<T, Q> = (query: Q) => Promise<ApiResponse<T[]>>
type PageQuery = { limit?: string; cursor?: string }

/** Reads a page of a list; all of them with --all. */
export const readList = <T, Q extends PageQuery>(
  loadPage: Page<T, Q>,
  query: Q,
  { all }: ListOptions,
): Promise<ApiResponse<T[]>> => (all ? readPages(loadPage, query, Infinity, () => true) : loadPage(query))

/**
 * Reads a page of a list that is newest first; with `sinceMs` all items created since then, up to the limit of the query.
 *
 * @param sinceMs milliseconds since the epoch
 */
export function readSince<T extends { createdAt: string }, Q extends PageQuery>(
  loadPage: Page<T, Q>,
  query: Q,
  sinceMs: number | undefined,
  options: ListOptions,
): Promise<ApiResponse<T[]>> {
  if (sinceMs === undefined) return readList(loadPage, query, options)
  const itemsMax = options.all ? Infinity : query.limit === undefined ? sinceItemsMax : Number(query.limit)
  return readPages(loadPage, query, itemsMax, ({ createdAt }) => Date.parse(createdAt) >= sinceMs)
}

/** Reads page after page, up to the first item that is not wanted. The body is that of one page with all items. */
async function readPages<T, Q extends PageQuery>(
  loadPage: Page<T, Q>,
  query: Q,
  itemsMax: number,
  isWanted: (item: T) => boolean,
): Promise<ApiResponse<T[]>> {
  const items: T[] = []
  let { cursor } = query
  for (;;) {
    const page = await loadPage({ ...query, limit: '200', ...(cursor !== undefined && { cursor }) })
    const wanted = page.data.filter(isWanted)
    items.push(...wanted)
    if (page.nextCursor === null || wanted.length < page.data.length || items.length >= itemsMax) break
    cursor = page.nextCursor
  }
  const data = items.slice(0, itemsMax)
  const pagination = { limit: data.length, nextCursor: null }
  return { data, nextCursor: null, body: JSON.stringify({ data, pagination }) }
}
