import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createConversation, refusal } from '../harness.ts'

let talk: ReturnType<typeof createConversation>

beforeEach(() => {
  talk = createConversation()
})

afterEach(() => talk.end())

describe('health', () => {
  test('is 8 for a server that is there and not ready', async () => {
    talk.answer = ({ path }) =>
      path === '/v1/health'
        ? Response.json({ data: { status: 'operational', service: 'otpd', time: '' } })
        : Response.json({ data: { status: 'not_ready', cause: 'draining' } }, { status: 503 })
    const ran = await talk.home.otpd(['health'])
    expect(ran).toMatchObject({ exitCode: 8, stderr: '' })
    expect(ran.stdout).toContain('is shutting down')
    const asJson = await talk.home.otpd(['health', '--json'])
    expect(asJson).toMatchObject({
      exitCode: 8,
      stdout: '{"data":{"status":"not_ready","cause":"draining"}}\n',
    })
  })

  test('waits as long as it is told', async () => {
    let calls = 0
    talk.answer = () =>
      ++calls < 5
        ? refusal(503, 'UNAVAILABLE', 'Not yet.')
        : Response.json({ data: { status: 'operational', service: 'otpd', time: '' } })
    expect((await talk.home.otpd(['health', '--wait', '30s'])).exitCode).toBe(0)
    await talk.server.stop()
    const startedAtMs = talk.home.clock.nowMs
    expect((await talk.home.otpd(['health', '--wait', '30s'])).exitCode).toBe(3)
    expect(talk.home.clock.nowMs - startedAtMs).toBeGreaterThan(29_000)
    expect(talk.home.clock.nowMs - startedAtMs).toBeLessThanOrEqual(30_000)
  })
})
