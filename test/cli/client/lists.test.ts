import { expect, test } from 'bun:test'
import type { ApiResponse } from '../../../cli/client/api.ts'
import { firstNonEmptyPage } from '../../../cli/client/lists.ts'

/** Makes a list of `pages` pages; only the one at `filled` has an item. */
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

test('empty pages are skipped, and the body is that of the first page with items', async () => {
  const { cursors, load } = createPages(9, 4)
  expect(await firstNonEmptyPage(load)).toEqual({ data: ['found'], nextCursor: '5', body: 'page 4' })
  expect(cursors).toEqual([undefined, '2', '3', '4'])
})

test('an empty list ends with its last page', async () => {
  const { cursors, load } = createPages(3, 0)
  expect(await firstNonEmptyPage(load)).toMatchObject({ data: [], nextCursor: null })
  expect(cursors).toHaveLength(3)
})

test('the search stops after fifty empty pages, with the cursor to continue from', async () => {
  const { cursors, load } = createPages(1000, 0)
  expect(await firstNonEmptyPage(load)).toMatchObject({ data: [], nextCursor: '51' })
  expect(cursors).toHaveLength(50)
})
