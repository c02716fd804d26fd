import { describe, expect, test } from 'bun:test'
import { withoutSecrets } from '../../src/config/without-secrets.ts'
import { load, loadFile, requireConfig, requireProblem } from '../helpers/config.ts'

const table = (...lines: string[]) => `[guard.challenge]\n${lines.join('\n')}`
const service = ['kind = "hcaptcha"', 'siteKey = "10000000-ffff"', 'secretFile = "/secret"']
const files = { '/secret': '0x0000\n' }

describe('the challenge of the guard', () => {
  test('is none by default', () => {
    expect(requireConfig(loadFile('')).guard.challenge).toBeNull()
  })

  test('is a proof of work that needs nothing else', () => {
    expect(requireConfig(loadFile(table('kind = "altcha"'))).guard.challenge).toEqual({ kind: 'altcha' })
  })

  test('is a service with its keys', () => {
    const loaded = loadFile(table(...service), { files })
    expect(requireConfig(loaded).guard.challenge).toEqual({
      kind: 'hcaptcha',
      siteKey: '10000000-ffff',
      secret: '0x0000',
      hostnames: [],
      timeoutMs: 5000,
      verifyUrl: null,
    })
    const lines = [
      'hostnames = ["Shop.example.com"]',
      'timeoutSeconds = 2',
      'verifyUrl = "http://127.0.0.1:9/x"',
    ]
    const detailed = requireConfig(loadFile(table(...service, ...lines), { files }))
    expect(detailed.guard.challenge).toMatchObject({
      hostnames: ['shop.example.com'],
      timeoutMs: 2000,
      verifyUrl: 'http://127.0.0.1:9/x',
    })
  })

  test('takes the secret from a variable, and never shows it', () => {
    const env = { HOME: '/h', OTPD_GUARD_CHALLENGE_SECRET: '0x4AAA-secret' }
    const loaded = loadFile(table('kind = "turnstile"', 'siteKey = "0x4AAA"'), { env })
    const config = requireConfig(loaded)
    expect(config.guard.challenge).toMatchObject({ kind: 'turnstile', secret: '0x4AAA-secret' })
    expect(JSON.stringify(loaded.settings)).not.toContain('0x4AAA-secret')
    expect(loaded.settings).toContainEqual({
      setting: 'guard.challenge.secret',
      value: '(set)',
      origin: 'OTPD_GUARD_CHALLENGE_SECRET',
    })
    expect(JSON.stringify(withoutSecrets(config))).not.toContain('0x4AAA-secret')
  })

  test('does not need the secret for a host command', () => {
    const loaded = load(
      {
        flags: { config: '/etc/o.toml' },
        files: { '/etc/o.toml': table('kind = "turnstile"', 'siteKey = "0x4AAA"') },
      },
      { use: 'host command' },
    )
    expect(requireConfig(loaded).guard.challenge).toMatchObject({ kind: 'turnstile', secret: '' })
  })

  test.each<[string[], string, string]>([
    [['kind = "captcha"'], ':2', '"captcha" is not a valid value. Use turnstile, hcaptcha or altcha.'],
    [['siteKey = "a"'], ':2', 'There is no guard.challenge.kind.'],
    [['kind = "altcha"', 'siteKey = "a"'], ':3', 'altcha is made and checked by otpd.'],
    [['kind = "turnstile"', 'secretFile = "/secret"'], ':2', 'turnstile needs a site key.'],
    [['kind = "turnstile"', 'siteKey = "a"'], ':2', 'turnstile needs a secret.'],
    [['kind = "turnstile"', 'siteKey = "a b"', 'secretFile = "/secret"'], ':3', 'This is not a key'],
    [['kind = "turnstile"', 'siteKey = "a"', 'secretFile = "/none"'], ':4', 'There is no file of that name.'],
    [['kind = "turnstile"', 'siteKey = "a"', 'secretFile = "/empty"'], ':4', 'The secret file is empty.'],
    [[...service, 'secret = "b"'], ':5', 'use OTPD_GUARD_CHALLENGE_SECRET'],
    [[...service, 'timeoutSeconds = 11'], ':5', '11'],
    [[...service, 'hostnames = ["https://shop.example.com"]'], ':5', 'is not a host name.'],
    [[...service, 'verifyUrl = "http://example.com/"'], ':5', 'Use https; http is allowed on loopback only.'],
  ])('refuses %j', (lines, place, text) => {
    const problem = requireProblem(loadFile(table(...lines), { files: { ...files, '/empty': '' } }))
    expect(problem.source).toEndWith(place)
    expect(problem.text).toContain(text)
    expect(problem.text).not.toContain('0x0000')
  })

  test('refuses two secrets', () => {
    const env = { HOME: '/h', OTPD_GUARD_CHALLENGE_SECRET: 'b' }
    expect(requireProblem(loadFile(table(...service), { env, files })).text).toContain('is also set by')
  })
})
