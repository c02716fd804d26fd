import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createConversation } from '../harness.ts'

let talk: ReturnType<typeof createConversation>

beforeEach(() => {
  talk = createConversation()
})

afterEach(() => talk.end())

describe('otp verify', () => {
  test('tells how many attempts are left', async () => {
    const error = {
      code: 'INVALID_CODE',
      message: 'The code is wrong.',
      traceId: 'r',
      metadata: { attemptsRemaining: 4 },
    }
    talk.answer = () => Response.json({ error }, { status: 400 })
    const env = { OTPD_CLIENT_ID: 'c', OTPD_CLIENT_SECRET: 's', OTPD_API_KEY: 'k' }
    const ran = await talk.home.otpd(['otp', 'verify', 'otp_1', '000000'], { env })
    expect(ran.exitCode).toBe(6)
    expect(ran.stderr).toContain('Attempts left: 4.')
  })
})
