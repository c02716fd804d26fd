import { expect, test } from 'bun:test'
import type { ApiResponse } from '../../../cli/client/api.ts'
import { firstNonEmptyPage } from '../../../cli/client/lists.ts'
import { createCliFixture, errorResponse, sampleProject } from '../cli-fixture.ts'

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

test('a list of many pages waits for the rate limit of the server, and loses no page', async () => {
  const cli = createCliFixture()
  let refusals = 0
  cli.respond = ({ path }) => {
    const page = Number(new URL(path, 'http://x').searchParams.get('cursor') ?? 1)
    if (page === 3 && refusals++ < 2) {
      return errorResponse(429, 'RATE_LIMITED', 'Too many requests.', { 'retry-after': '41' })
    }
    const nextCursor = page === 4 ? null : String(page + 1)
    const name = `shop ${page}`
    return Response.json({ data: [sampleProject({ name })], pagination: { limit: 200, nextCursor } })
  }
  const startedAt = cli.home.clock.nowMs
  const result = await cli.home.otpd(['project', 'get', 'shop 4'])
  expect(cli.home.clock.nowMs - startedAt).toBeGreaterThanOrEqual(82_000)
  expect(result.stderr).toContain('The server limits calls per minute; continuing in 41 s.')
  expect(
    cli.server.requests.map(({ path }) => path).filter((path) => path.includes('cursor=3')),
  ).toHaveLength(3)
  cli.end()
})

test('a refused first page is an error, since nothing would be lost', async () => {
  const cli = createCliFixture()
  cli.respond = () => errorResponse(429, 'RATE_LIMITED', 'Too many requests.', { 'retry-after': '41' })
  const result = await cli.home.otpd(['project', 'list'])
  expect(result).toMatchObject({ exitCode: 7, stderr: expect.stringContaining('Try again in 41 s.') })
  cli.end()
})
