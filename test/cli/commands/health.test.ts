import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCliFixture, errorResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

describe('health', () => {
  test('is 8 for a server that is up but not ready', async () => {
    cli.respond = ({ path }) =>
      path === '/v1/health'
        ? Response.json({ data: { status: 'operational', service: 'otpd', time: '' } })
        : Response.json({ data: { status: 'not_ready', cause: 'draining' } }, { status: 503 })
    const result = await cli.home.otpd(['health'])
    expect(result).toMatchObject({ exitCode: 8, stderr: '' })
    expect(result.stdout).toContain('is shutting down')
    const jsonResult = await cli.home.otpd(['health', '--json'])
    expect(jsonResult).toMatchObject({
      exitCode: 8,
      stdout: '{"data":{"status":"not_ready","cause":"draining"}}\n',
    })
  })

  test('waits for the time given by --wait', async () => {
    let calls = 0
    cli.respond = () =>
      ++calls < 5
        ? errorResponse(503, 'UNAVAILABLE', 'Not yet.')
        : Response.json({ data: { status: 'operational', service: 'otpd', time: '' } })
    expect((await cli.home.otpd(['health', '--wait', '30s'])).exitCode).toBe(0)
    await cli.server.stop()
    const startedAtMs = cli.home.clock.nowMs
    expect((await cli.home.otpd(['health', '--wait', '30s'])).exitCode).toBe(3)
    expect(cli.home.clock.nowMs - startedAtMs).toBeGreaterThan(29_000)
    expect(cli.home.clock.nowMs - startedAtMs).toBeLessThanOrEqual(30_000)
  })
})
