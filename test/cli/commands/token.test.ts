import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createCliFixture, pageResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

const token = (name: string, expiresAt: string | null) => ({
  id: `tok_${'0'.repeat(26)}`,
  name,
  scopes: ['read'],
  preview: 'otpd_pat_0123****cdef',
  createdAt: '2026-11-20T11:00:00.000Z',
  expiresAt,
  lastUsedAt: null,
})

test('token list says which tokens have expired', async () => {
  cli.respond = () =>
    pageResponse(
      token('endless', null),
      token('current', '2026-11-20T12:00:01.000Z'),
      token('old', '2026-11-20T12:00:00.000Z'),
    )
  const { stdout } = await cli.home.otpd(['token', 'list'])
  const rows = stdout.split('\n').slice(1, -1)
  expect(rows.map((row) => row.split(/ {2,}/)[3])).toEqual([
    'never',
    expect.stringMatching(/:01$/),
    'expired',
  ])
})
