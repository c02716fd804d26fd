import { describe, expect, test } from 'bun:test'
import { addressChecks, configurationChecks, webhookChecks } from '../../../cli/doctor/config.ts'
import { requireConfig as requireValid } from '../../../cli/host/config.ts'
import { requireConfig, loadEnv, loadFile } from '../../helpers/config.ts'

describe('the configuration', () => {
  test('has every problem as a fault, with its line and what to do', () => {
    const checks = configurationChecks(loadFile('[server]\nlisten = "nowhere"\nlitsen = "127.0.0.1:1"\n'))
    expect(checks).toHaveLength(2)
    expect(checks.every(({ status }) => status === 'fault')).toBe(true)
    expect(checks.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^\/etc\/o\.toml:2: /),
      expect.stringMatching(/^\/etc\/o\.toml:3: There is no setting server\.litsen/),
    ])
  })

  test('shows the first twenty problems, and counts the others', () => {
    const load = (count: number) =>
      loadFile(Array.from({ length: count }, (_, index) => `key${index} = 1`).join('\n'))
    expect(configurationChecks(load(20)).at(-1)?.message).toBe('/etc/o.toml:20: There is no setting key19.')
    const checks = configurationChecks(load(1_021))
    expect(checks).toHaveLength(21)
    expect(checks.at(-1)).toMatchObject({
      status: 'fault',
      message: 'configuration: 1,001 more problems are not shown.',
    })
    expect(() => requireValid(load(21), 2)).toThrow(
      expect.objectContaining({
        message: 'The configuration has 21 problems.',
        hints: expect.arrayContaining(['configuration: 1 more problem is not shown.']),
      }),
    )
  })

  test('has every warning, and a removed setting as a fault', () => {
    const warnings = [{ source: '/etc/o.toml:2', message: 'The certificate ended.', remedy: 'Renew it.' }]
    expect(configurationChecks({ ...loadFile(''), warnings })).toMatchObject([
      { status: 'ok' },
      { status: 'warning', message: '/etc/o.toml:2: The certificate ended.' },
    ])
    expect(configurationChecks(loadFile('[guard]\ncountryPerDay = 5\n'))).toMatchObject([
      { status: 'fault', message: '/etc/o.toml:2: guard.countryPerDay was removed.' },
    ])
  })

  test('without problems names its file', () => {
    expect(configurationChecks(loadFile(''))).toMatchObject([{ status: 'ok', message: '/etc/o.toml' }])
  })
})

describe('the address', () => {
  const findProblems = (env: Record<string, string>) =>
    addressChecks(requireConfig(loadEnv(env))).filter(({ status }) => status !== 'ok')

  test.each<Record<string, string>>([
    { OTPD_LISTEN: '127.0.0.1:8080' },
    { OTPD_LISTEN: '[::1]:8080' },
    { OTPD_PUBLIC_URL: 'http://localhost:8080' },
    { OTPD_PUBLIC_URL: 'https://otp.example.com', OTPD_TRUSTED_PROXIES: '127.0.0.1' },
    { OTPD_LISTEN: '0.0.0.0:80', OTPD_PUBLIC_URL: 'https://a.example', OTPD_TRUSTED_PROXIES: '10.0.0.0/8' },
  ])('is fine: %p', (env) => {
    expect(findProblems(env)).toEqual([])
  })

  test.each<[Record<string, string>, string]>([
    [{ OTPD_LISTEN: '0.0.0.0:80' }, 'plain http'],
    [{ OTPD_PUBLIC_URL: 'http://otp.example.com' }, 'unencrypted'],
    [{ OTPD_PUBLIC_URL: 'https://otp.example.com' }, 'no proxy is trusted'],
    [{ OTPD_TRUSTED_PROXIES: '0.0.0.0/0' }, 'can forge client addresses'],
  ])('%p is a warning', (env, expectedText) => {
    expect(findProblems(env)).toMatchObject([
      { status: 'warning', message: expect.stringContaining(expectedText) },
    ])
  })
})

describe('webhooks', () => {
  const checkWebhooks = (allow: string) =>
    webhookChecks(requireConfig(loadEnv({ OTPD_WEBHOOK_ALLOW: allow })))

  test.each(['', '10.0.0.0/8', 'hooks.internal,fd00::/8', '127.0.0.1'])(
    'are ok when allowed to reach "%s"',
    (allow) => {
      expect(checkWebhooks(allow)).toMatchObject([{ status: 'ok' }])
    },
  )

  test.each([
    ['0.0.0.0/0', 'almost any address'],
    ['10.0.0.0/8,::/0', '::/0'],
    ['169.254.0.0/16', 'credentials'],
    ['169.254.169.254', 'credentials'],
  ])('are a warning when allowed to reach %s', (allow, expectedText) => {
    expect(checkWebhooks(allow)).toMatchObject([
      { status: 'warning', message: expect.stringContaining(expectedText) },
    ])
  })
})
