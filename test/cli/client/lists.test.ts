import { expect, test } from 'bun:test'
import { createCliFixture, errorResponse, sampleProject } from '../cli-fixture.ts'

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
