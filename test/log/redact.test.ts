import { describe, expect, test } from 'bun:test'
import { redactPhone, scrub } from '../../src/shared/redact.ts'
import { jsonLine, textLine } from '../helpers/log.ts'

const hex = '0123456789abcdef0123456789abcdef0123456789abcdef'
const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl'

describe('redaction', () => {
  test.each([
    ['+14155552671', '+1•••••2671'],
    ['+9991234567890', '+9•••••7890'],
    ['+1234567', '+1•••••67'],
    ['4155552671', '•••••2671'],
    ['12345', '•••••'],
    ['', '•••••'],
  ])('shows the phone %p as %s', (phone, shown) => {
    expect(redactPhone(phone)).toBe(shown)
  })

  test.each(['phone', 'phoneNumber', 'virtualPhoneNumber', 'virtual_phone'])(
    'masks the field %s',
    async (name) => {
      expect(await jsonLine('x', { [name]: '+14155552671' })).toMatchObject({ [name]: '+1•••••2671' })
      expect(JSON.stringify(await jsonLine('x', { [name]: 14155552671 }))).not.toContain('415555')
    },
  )

  test.each([
    'password',
    'clientSecret',
    'apiKey',
    'x-api-key',
    'token',
    'refresh_token',
    'Authorization',
    'masterKey',
  ])('hides the field %s', async (name) => {
    expect(await jsonLine('x', { [name]: 'anything at all' })).toMatchObject({ [name]: '[hidden]' })
  })

  test('hides a passcode in the field code, and shows the code of an error', async () => {
    expect(await jsonLine('x', { code: '012345' })).toMatchObject({ code: '[hidden]' })
    expect(await jsonLine('x', { code: 123456 })).toMatchObject({ code: '[hidden]' })
    expect(await jsonLine('x', { code: 'RATE_LIMITED' })).toMatchObject({ code: 'RATE_LIMITED' })
  })

  test.each([
    [`key ph_live_api_${hex} is bad`, 'key ph_live_api_[hidden] is bad'],
    [`ph_test_secret_${hex}`, 'ph_test_secret_[hidden]'],
    [`ph_live_secret_${hex.slice(0, 20)}`, 'ph_live_secret_[hidden]'],
    [`whsec_${hex}`, 'whsec_[hidden]'],
    [`Authorization: Bearer ${hex}`, 'Authorization: Bearer [hidden]'],
    [`bearer ${jwt}`, 'bearer [hidden]'],
    ['Basic YWRhOnNlY3JldA==', 'Basic [hidden]'],
    [`token ${jwt}!`, 'token [hidden]!'],
    ['st_abcdefghijklmnopqrstuv', 'st_[hidden]'],
    ['rt_abc-efghijklmnopqrs_uv', 'rt_[hidden]'],
    [`hash ${hex}0123456789abcdef`, 'hash [hidden]'],
    ['key AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=', 'key [hidden]'],
    ['postgres://ada:pw@db/otpd', 'postgres://[hidden]@db/otpd'],
    ['GET https://a.example/hook?key=abc&x=1 failed', 'GET https://a.example/hook?[hidden] failed'],
    ['GET /v1/users?phone=415', 'GET /v1/users?[hidden]'],
    ['GET /x?to=+49 (150) 58799035', 'GET /x?[hidden]'],
    ['token=+49 150 58799035', 'token=[hidden]'],
    ['password=hunter2, user=ada', 'password=[hidden], user=ada'],
    ['{"password":"hunter two","user":"ada"}', '{"password":[hidden],"user":"ada"}'],
    ['to +14155552671.', 'to +1•••••2671.'],
    ['to +1 (415) 555-2671', 'to +1•••••2671'],
    ['GET /v1/users/%2B14155552671', 'GET /v1/users/+1•••••2671'],
    ['GET /v1/users/%252b14155552671', 'GET /v1/users/+1•••••2671'],
    ['dial 0014155552671', 'dial •••••2671'],
    ['Your code is 012345.', 'Your code is ••••••.'],
    ['code_123456 "654321"', 'code_•••••• "••••••"'],
  ])('scrubs %p', (text, scrubbed) => {
    expect(scrub(text)).toBe(scrubbed)
  })

  test.each([
    'http://127.0.0.1:8080/v1/health',
    'otp_01h455vb4pex5vsknk084sn02q',
    'otp_01jd0q123456xa7b8c9d0e1f2g',
    '2026-11-20T12:00:00.123Z took 1234 ms of 10000',
    '5e1f4a0c-1234-4abc-9def-0123456789ab',
    `ph_live_client_${hex}`,
    'statusCode=503 reason=timeout',
    'SQLITE_CONSTRAINT_UNIQUE: projects.name',
    '/var/lib/otpd/setup-token',
    'listen EADDRINUSE: address already in use 127.0.0.1:65535',
  ])('leaves %p alone', (text) => {
    expect(scrub(text)).toBe(text)
  })

  test('also applies to messages and lists', async () => {
    const line = await textLine('sent to +14155552671', { list: [`whsec_${hex}`, '+442071838750'] })
    expect(line).not.toMatch(/5552671|0123456789|2071838/)
  })

  test('applies however long the text is', async () => {
    const line = await textLine('x', { text: `${'a'.repeat(3990)} ph_live_secret_${hex} +14155552671` })
    expect(line).not.toMatch(/0123456789|41555/)
    expect(line.length).toBeLessThan(2200)
  })
})
