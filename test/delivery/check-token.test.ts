import { afterAll, expect, test } from 'bun:test'
import { createTokenCheck } from '../../src/delivery/check-token.ts'
import { siteverifyKeys, startSiteverify } from '../helpers/siteverify.ts'

const site = startSiteverify('turnstile')
afterAll(() => site.stop())

const service = {
  kind: 'turnstile',
  siteKey: siteverifyKeys.siteKey,
  secret: siteverifyKeys.secret,
  hostnames: [],
  timeoutMs: 5000,
  verifyUrl: site.url,
} as const

test('100 checks at once hold connections to a slow service, and no more', async () => {
  const { checkToken, close } = createTokenCheck({ version: '1.0.0' })
  const released = Promise.withResolvers<void>()
  site.answerWith(async () => {
    await released.promise
    return Response.json({ success: true })
  })
  const running = Array.from({ length: 100 }, () => checkToken(service, 'token', undefined))
  expect(await checkToken(service, 'token', undefined)).toEqual({
    outcome: 'unavailable',
    error: '100 checks at once',
  })
  released.resolve()
  expect(new Set((await Promise.all(running)).map(({ outcome }) => outcome))).toEqual(new Set(['passed']))
  site.answerWith()
  expect(await checkToken(service, site.issue(), undefined)).toEqual({ outcome: 'passed' })
  close()
})

test('the secret is in no error', async () => {
  const { checkToken, close } = createTokenCheck({ version: '1.0.0' })
  site.answerWith(({ fields }) => Response.json({ success: false, 'error-codes': [fields['secret']] }))
  const check = await checkToken({ ...service, secret: 'The Secret' }, 'token', undefined)
  expect(check).toEqual({ outcome: 'unavailable', error: 'no error code' })
  site.answerWith()
  close()
})

test('a result counts as passed only in a response that says that the call succeeded', async () => {
  const { checkToken, close } = createTokenCheck({ version: '1.0.0' })
  for (const status of [302, 400, 500]) {
    site.answerWith(() => Response.json({ success: true, hostname: 'shop.example.com' }, { status }))
    const check = await checkToken(service, 'token', undefined)
    expect(check).toEqual({ outcome: 'unavailable', error: `HTTP ${status}` })
  }
  // The services refuse some tokens with 400.
  const refusal = { success: false, 'error-codes': ['invalid-input-response'] }
  site.answerWith(() => Response.json(refusal, { status: 400 }))
  expect(await checkToken(service, 'token', undefined)).toMatchObject({ outcome: 'failed' })
  site.answerWith()
  close()
})
