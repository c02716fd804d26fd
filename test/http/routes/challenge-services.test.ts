import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { TokenCheck } from '../../../src/domain/model/challenge.ts'
import { enforced, openDevice } from '../../helpers/challenged-device.ts'
import { countByOutcome, createOtpClient, type OtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'
import { siteverifyKeys, startSiteverify } from '../../helpers/siteverify.ts'

describe.each(['turnstile', 'hcaptcha'] as const)('a guard with %s', (kind) => {
  const site = startSiteverify(kind)
  const checks: Array<[string, TokenCheck]> = []
  let service: TestService
  let otp: OtpClient
  beforeAll(async () => {
    service = await createTestService({
      plans: unlimitedPlans,
      env: {
        ...enforced,
        OTPD_GUARD_CHALLENGE_KIND: kind,
        OTPD_GUARD_CHALLENGE_SITE_KEY: siteverifyKeys.siteKey,
        OTPD_GUARD_CHALLENGE_SECRET: siteverifyKeys.secret,
        OTPD_GUARD_CHALLENGE_HOSTNAMES: 'shop.example.com',
        OTPD_GUARD_CHALLENGE_TIMEOUT_SECONDS: '1',
        OTPD_GUARD_CHALLENGE_VERIFY_URL: site.url,
      },
      onChallengeChecked: (...check) => void checks.push(check),
    })
    otp = createOtpClient(service)
  })
  afterAll(async () => {
    await service.dispose()
    await site.stop()
  })
  const failed = [403, 'CHALLENGE_REQUIRED', 'CHALLENGE_FAILED']

  /** Sends with a token beyond the allowance. @returns its outcome, and what the check said */
  async function sendWith(challenge: string) {
    const { send } = await openDevice(service, otp)
    const { status, error } = await send({ challenge })
    return { outcome: [status, error?.code, error?.reason], check: checks.at(-1) }
  }

  test('answers 403 with the site key, and passes a send whose token the service confirms, once', async () => {
    const { send } = await openDevice(service, otp)
    site.calls.length = 0
    const refused = await send({ clientIp: '203.0.113.9' })
    expect([refused.status, refused.error.code]).toEqual([403, 'CHALLENGE_REQUIRED'])
    expect(refused.error.metadata).toEqual({ kind, siteKey: siteverifyKeys.siteKey })
    // Without a token the service is not asked.
    expect(site.calls).toEqual([])
    const challenge = site.issue()
    expect((await send({ challenge, clientIp: '203.0.113.9' })).status).toBe(201)
    expect(site.calls).toEqual([
      {
        contentType: 'application/x-www-form-urlencoded',
        fields: {
          secret: siteverifyKeys.secret,
          response: challenge,
          remoteip: '203.0.113.9',
          ...(kind === 'hcaptcha' && { sitekey: siteverifyKeys.siteKey }),
        },
      },
    ])
    const again = await send({ challenge })
    expect([again.status, again.error.code, again.error.reason]).toEqual(failed)
    const reused = kind === 'turnstile' ? 'timeout-or-duplicate' : 'already-seen-response'
    expect(checks.at(-1)).toEqual([kind, { outcome: 'failed', error: reused }])
  })

  test('lets two sends with one token at once pass once', async () => {
    const { send } = await openDevice(service, otp)
    const challenge = site.issue()
    const responses = await Promise.all([send({ challenge }), send({ challenge })])
    expect(countByOutcome(responses)).toEqual({ '201': 1, '403 CHALLENGE_REQUIRED CHALLENGE_FAILED': 1 })
  })

  test('refuses an unknown token, and one that was passed on another host name', async () => {
    expect(await sendWith('unknown')).toEqual({
      outcome: failed,
      check: [kind, { outcome: 'failed', error: 'invalid-input-response' }],
    })
    expect(await sendWith(site.issue('evil.example.com'))).toEqual({
      outcome: failed,
      check: [kind, { outcome: 'failed', error: 'passed on another host name' }],
    })
  })

  test.each<[string, () => Response | Promise<Response>, string]>([
    ['does not answer in time', () => new Promise(() => {}), 'no answer in 1 s'],
    ['fails', () => new Response('Internal error', { status: 500 }), 'HTTP 500 without a result'],
    ['answers garbage', () => new Response('{"success":"true"}'), 'HTTP 200 without a result'],
    ['moved', () => Response.redirect('https://example.com/', 302), 'HTTP 302 without a result'],
    ['gives no reason', () => Response.json({ success: false }), 'no error code'],
    [
      'refuses the secret',
      () => Response.json({ success: false, 'error-codes': ['invalid-input-secret'] }),
      'invalid-input-secret',
    ],
  ])('is closed if the service %s', async (_, answer, error) => {
    site.answerWith(answer)
    expect(await sendWith(site.issue())).toEqual({
      outcome: failed,
      check: [kind, { outcome: 'unavailable', error }],
    })
    site.answerWith()
  })

  test('is closed if the service cannot be reached or has another secret, and uses new settings at once', async () => {
    const settings = service.services.guard.settings()
    const configure = (changes: object) =>
      service.services.guard.configure({
        ...settings,
        challenge: { ...settings.challenge, ...changes } as typeof settings.challenge,
      })
    configure({ verifyUrl: 'http://127.0.0.1:1/siteverify' })
    const unreachable = await sendWith(site.issue())
    expect(unreachable.outcome).toEqual(failed)
    expect(unreachable.check).toMatchObject([kind, { outcome: 'unavailable' }])
    configure({ secret: 'another' })
    expect(await sendWith(site.issue())).toEqual({
      outcome: failed,
      check: [kind, { outcome: 'unavailable', error: 'invalid-input-secret' }],
    })
    configure({})
    expect((await sendWith(site.issue())).outcome[0]).toBe(201)
  })

  test('asks no service for a test application, a wrong number or in mode monitor', async () => {
    site.calls.length = 0
    const developer = await service.createDeveloper()
    const app = await service.createApplication(developer, { environment: 'test' })
    expect((await otp.send(app, { challenge: 'any' })).status).toBe(201)
    const live = await service.createApplication(developer)
    expect((await otp.send(live, { phone: '+1', challenge: 'any' })).status).toBe(400)
    const settings = service.services.guard.settings()
    service.services.guard.configure({ ...settings, mode: 'monitor' })
    expect((await otp.send(live, { challenge: 'any' })).status).toBe(201)
    service.services.guard.configure(settings)
    expect(site.calls).toEqual([])
  })
})
