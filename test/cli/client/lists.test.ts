import { expect, test } from 'bun:test'
import type { ApiResponse } from '../../../cli/client/api.ts'
import { firstNonEmptyPage } from '../../../cli/client/lists.ts'

/** A list of so many pages of which only the one at `filled` has anything on it. */
function createPages(pages: number, filled: number) {
  const cursors: (string | undefined)[] = []
  const load = async ({ cursor }: { cursor?: string }): Promise<ApiResponse<string[]>> => {
    cursors.push(cursor)
    const page = Number(cursor ?? 1)
    return {
      data: page === filled ? ['found'] : [],
      nextCursor: page === pages ? null : String(page + 1),
      body: `page ${page}`,
    }
  }
  return { cursors, load }
}

test('empty pages are gone past, and the body is that of the page with something on it', async () => {
  const { cursors, load } = createPages(9, 4)
  expect(await firstNonEmptyPage(load)).toEqual({ data: ['found'], nextCursor: '5', body: 'page 4' })
  expect(cursors).toEqual([undefined, '2', '3', '4'])
})

test('a list with nothing on it ends with its last page', async () => {
  const { cursors, load } = createPages(3, 0)
  expect(await firstNonEmptyPage(load)).toMatchObject({ data: [], nextCursor: null })
  expect(cursors).toHaveLength(3)
})

test('a list that hardly ends is left after fifty pages, with the cursor to go on by', async () => {
  const { cursors, load } = createPages(1000, 0)
  expect(await firstNonEmptyPage(load)).toMatchObject({ data: [], nextCursor: '51' })
  expect(cursors).toHaveLength(50)
})
