import type { Command } from 'commander'
import type { ApiResponse } from './api.ts'
import { usageError } from '../terminal/errors.ts'
import type { Output } from '../terminal/output.ts'

export type ListOptions = { limit?: string; cursor?: string }

/** What every list takes. */
export const addListOptions = (command: Command) =>
  command
    .option('--limit <number>', 'how many, 1 to 200 (50)')
    .option('--cursor <cursor>', 'the page behind this cursor')

export function listQuery({ limit, cursor }: ListOptions) {
  if (limit !== undefined && !/^\d+$/.test(limit)) throw usageError('--limit is a number from 1 to 200.')
  return { ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) }
}

/** Says that a list goes on: a person would take the first page for all of it. */
export function printNextPageHint(output: Output, { nextCursor }: ApiResponse<unknown>) {
  if (nextCursor !== null)
    output.note(output.paintError.dim(`There are more: --limit 200, or\n  --cursor ${nextCursor}`))
}

const emptyPagesMax = 50

/**
 * The first page that has anything on it. A page of a filtered list looks at so much of a long history, and may be
 * empty although the list goes on.
 */
export async function firstNonEmptyPage<T>(
  load: (pageQuery: { cursor?: string }) => Promise<ApiResponse<T[]>>,
): Promise<ApiResponse<T[]>> {
  let page = await load({})
  for (
    let pageCount = 1;
    page.data.length === 0 && page.nextCursor !== null && pageCount < emptyPagesMax;
    pageCount++
  )
    page = await load({ cursor: page.nextCursor })
  return page
}
