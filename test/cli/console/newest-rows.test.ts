import { expect, test } from 'bun:test'
import { newestRows } from '../../../cli/console/newest-rows.ts'

/** Serves pages by cursor, as a server that scans a limited number of rows per page. */
const createPages = (pages: number[][]) => {
  const cursors: (string | undefined)[] = []
  const loadPage = async ({ cursor }: { cursor?: string }) => {
    cursors.push(cursor)
    const at = Number(cursor ?? 0)
    return { data: pages[at] ?? [], nextCursor: at + 1 < pages.length ? String(at + 1) : null }
  }
  return { cursors, loadPage }
}

test('rows after an empty page are found', async () => {
  const { loadPage } = createPages([[], [9, 8], [7]])
  expect(await newestRows(50, loadPage)).toEqual({ rows: [9, 8, 7], isTruncated: false })
})

test('no more pages are loaded than needed', async () => {
  const { loadPage, cursors } = createPages([[9, 8], [7, 6], [5]])
  expect(await newestRows(3, loadPage)).toEqual({ rows: [9, 8, 7], isTruncated: false })
  expect(cursors).toEqual([undefined, '1'])
})

test('a long search stops, and reports that it is truncated', async () => {
  const { loadPage, cursors } = createPages(Array.from({ length: 100 }, () => []))
  expect(await newestRows(50, loadPage)).toEqual({ rows: [], isTruncated: true })
  expect(cursors).toHaveLength(10)
})
