import { expect, test } from 'bun:test'
import { newestRows } from '../../../cli/console/newest-rows.ts'

/** Pages by their cursor, as a server that looks through so many rows a page answers them. */
const listOf = (pages: number[][]) => {
  const asked: (string | undefined)[] = []
  const ask = async ({ cursor }: { cursor?: string }) => {
    asked.push(cursor)
    const at = Number(cursor ?? 0)
    return { data: pages[at] ?? [], nextCursor: at + 1 < pages.length ? String(at + 1) : null }
  }
  return { asked, ask }
}

test('rows behind an empty page are found', async () => {
  const { ask } = listOf([[], [9, 8], [7]])
  expect(await newestRows(50, ask)).toEqual({ rows: [9, 8, 7], isCut: false })
})

test('no more pages are asked for than are needed', async () => {
  const { ask, asked } = listOf([[9, 8], [7, 6], [5]])
  expect(await newestRows(3, ask)).toEqual({ rows: [9, 8, 7], isCut: false })
  expect(asked).toEqual([undefined, '1'])
})

test('a long search ends, and says so', async () => {
  const { ask, asked } = listOf(Array.from({ length: 100 }, () => []))
  expect(await newestRows(50, ask)).toEqual({ rows: [], isCut: true })
  expect(asked).toHaveLength(10)
})
