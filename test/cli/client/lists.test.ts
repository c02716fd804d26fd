import { expect, test } from 'bun:test'
import type { Answer } from '../../../cli/client/api.ts'
import { firstFilled } from '../../../cli/client/lists.ts'

/** A list of so many pages of which only the one at `filled` has anything on it. */
function listOf(pages: number, filled: number) {
  const asked: (string | undefined)[] = []
  const load = async ({ cursor }: { cursor?: string }): Promise<Answer<string[]>> => {
    asked.push(cursor)
    const page = Number(cursor ?? 1)
    return {
      data: page === filled ? ['found'] : [],
      nextCursor: page === pages ? null : String(page + 1),
      body: `page ${page}`,
    }
  }
  return { asked, load }
}

test('empty pages are gone past, and the body is that of the page with something on it', async () => {
  const { asked, load } = listOf(9, 4)
  expect(await firstFilled(load)).toEqual({ data: ['found'], nextCursor: '5', body: 'page 4' })
  expect(asked).toEqual([undefined, '2', '3', '4'])
})

test('a list with nothing on it ends with its last page', async () => {
  const { asked, load } = listOf(3, 0)
  expect(await firstFilled(load)).toMatchObject({ data: [], nextCursor: null })
  expect(asked).toHaveLength(3)
})

test('a list that hardly ends is left after fifty pages, with the cursor to go on by', async () => {
  const { asked, load } = listOf(1000, 0)
  expect(await firstFilled(load)).toMatchObject({ data: [], nextCursor: '51' })
  expect(asked).toHaveLength(50)
})
