import { Option, type Command } from 'commander'
import type { ApiResponse } from './api.ts'
import { readPages } from './find.ts'
import { usageError } from '../terminal/errors.ts'
import type { Output } from '../terminal/output.ts'

export type ListOptions = { limit?: string; cursor?: string; all?: true }

/** Adds the paging options of every list command. */
export const addListOptions = <C extends Command>(command: C): C =>
  command
    .option('--limit <number>', 'maximum number of items, 1 to 200 (default 50)')
    .addOption(new Option('--all', 'every item, not only the first page').conflicts(['limit', 'cursor']))
    .option('--cursor <cursor>', 'start after this cursor: pagination.nextCursor of --json')

/** Query parameters that choose a page. */
type Paging = { limit?: string; cursor?: string }

/** Loads a page of a list. */
type LoadPage<T> = (paging: Paging) => Promise<ApiResponse<T[]>>

/**
 * Converts the paging options to query parameters.
 *
 * @throws usage error when --limit is not a number
 */
export function readPaging({ limit, cursor }: ListOptions): Paging {
  if (limit !== undefined && !/^\d+$/.test(limit)) throw usageError('--limit must be a number from 1 to 200.')
  return { ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) }
}

/** Items that are read at most to find those since a time. */
const sinceItemsMax = 10_000

/** Reads the page of a list that the options name; all of them with --all. @throws usage error as readPaging does */
export async function readList<T>(options: ListOptions, loadPage: LoadPage<T>): Promise<ApiResponse<T[]>> {
  const paging = readPaging(options)
  return options.all ? toPage(await readPages(loadPage)) : await loadPage(paging)
}

/**
 * Reads a page of a list that is newest first; with `sinceMs` all items created since then, up to --limit.
 *
 * @param sinceMs milliseconds since the epoch
 */
export async function readSince<T extends { createdAt: string }>(
  options: ListOptions,
  sinceMs: number | undefined,
  loadPage: LoadPage<T>,
): Promise<ApiResponse<T[]>> {
  if (sinceMs === undefined) return await readList(options, loadPage)
  const { limit, cursor } = readPaging(options)
  const itemsMax = options.all ? Infinity : Number(limit ?? sinceItemsMax)
  const isWanted = ({ createdAt }: T) => Date.parse(createdAt) >= sinceMs
  return toPage(await readPages(loadPage, { cursor, itemsMax, isWanted }))
}

/**
 * Prints a list, and notes that there are more pages: people could take the first page for the whole list.
 *
 * @param text formats the items
 * @param note about the list, printed before the one about more pages
 */
export function printList<T extends { id: string }>(
  output: Output,
  page: ApiResponse<T[]>,
  text: (items: T[]) => string,
  note?: string,
) {
  const ids = page.data.map(({ id }) => id)
  output.printResult(page.body, () => text(page.data), ids)
  if (note !== undefined) output.note(note)
  noteMorePages(output, page)
}

/** Notes that there are more pages. */
export function noteMorePages(output: Output, { nextCursor }: ApiResponse<unknown>) {
  if (nextCursor !== null)
    output.note(output.paintError.dim('There are more: --all shows every item, --limit 200 the first 200.'))
}

/** Makes the response of one page that has all items. */
function toPage<T>(data: T[]): ApiResponse<T[]> {
  const pagination = { limit: data.length, nextCursor: null }
  return { data, nextCursor: null, body: JSON.stringify({ data, pagination }) }
}
