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
