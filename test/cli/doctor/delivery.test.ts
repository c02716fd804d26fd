import { describe, expect, test } from 'bun:test'
import { deliveryChecks } from '../../../cli/doctor/delivery.ts'
import type { OpenCircuit } from '../../../src/host/host.ts'
import { openProviders } from '../../../src/server/start.ts'
import { tryChallenge } from '../../../src/server/try-challenge.ts'
import { requireConfig, loadFile } from '../../helpers/config.ts'
import { siteverifyKeys, startSiteverify } from '../../helpers/siteverify.ts'

const nowMs = Date.parse('2026-11-20T12:00:00Z')
const secret = 'abcdefabcdefabcdefabcdefabcdef12'

const twilio = (name: string) => `
[[providers]]
name = "${name}"
kind = "twilio"
accountSid = "AC00000000000000000000000000000000"
authTokenFile = "/secret"
from = "+15005550006"
`
const smpp = (host: string, extraToml: string) => `
[[providers]]
name = "smsc"
kind = "smpp"
host = "${host}"
port = 2775
systemId = "me"
passwordFile = "/secret"
from = "ACME"
${extraToml}
`
const route = (providers: string, extraToml = '', channel = 'sms') =>
  `\n[[routes]]\nchannel = "${channel}"\nproviders = [${providers}]\n${extraToml}\n`

async function runDeliveryChecks(
  toml: string,
  resting: OpenCircuit[] = [],
  guardAlerts: Array<{ country: string; until: number }> = [],
  verifiedCountries: string[] = [],
  challenge: { fault: string | undefined } | null = null,
  sendCounts = { sends: 0, untold: 0 },
) {
  const config = requireConfig(loadFile(toml, { files: { '/secret': secret } }))
  const opened = openProviders(config, '1.0.0')
  try {
    const providers = await opened.list()
    return deliveryChecks({
      config,
      providers,
      openCircuits: resting,
      guardAlerts,
      verifiedCountries,
      challenge,
      sendCounts,
      nowMs,
      configFile: '/etc/o.toml',
    })
  } finally {
    opened.close()
  }
}

const findProblems = async (toml: string, resting?: OpenCircuit[]) =>
  (await runDeliveryChecks(toml, resting)).filter(({ status }) => status !== 'ok')

const messages = async (toml: string, name: string, resting?: OpenCircuit[]) =>
  (await findProblems(toml, resting)).flatMap((check) =>
    check.name === name ? `${check.status}: ${check.message}` : [],
  )

const validToml = `
[server]
publicUrl = "https://otp.example.com"
trustedProxies = ["127.0.0.1"]
[plans.free]
sendPerMinute = 60
[guard]
mode = "enforce"
countries = ["NL", "BE"]
${twilio('main')}`

test('an alert of the guard is a warning that names the country, until it ends', async () => {
  const guardAlerts = [
    { country: 'NL', until: nowMs + 1 },
    // That of another developer.
    { country: 'NL', until: nowMs + 2 },
    { country: 'BE', until: nowMs },
  ]
  const alerts = (await runDeliveryChecks(validToml, [], guardAlerts)).filter(
    ({ name }) => name === 'guard alert',
  )
  expect(alerts.map(({ status, message }) => `${status}: ${message.slice(0, 3)}`)).toEqual(['warning: NL:'])
})

test('suggests the countries in which codes were verified', async () => {
  const toml = validToml.replace('countries = ["NL", "BE"]\n', '')
  const remedyFor = async (countries: string[]) =>
    (await runDeliveryChecks(toml, [], [], countries)).find(({ name }) => name === 'countries')?.remedy
  expect(await remedyFor(['GB', 'IE'])).toBe(
    'List the countries that you serve in [guard]. Codes were verified in: countries = ["GB", "IE"]',
  )
  expect(await remedyFor([])).toContain('as ISO codes')
})

test('says that clientIp helps where most sends do not tell it', async () => {
  const messageFor = async (sends: number, untold: number) =>
    (await runDeliveryChecks(validToml, [], [], [], null, { sends, untold })).find(
      ({ name }) => name === 'clientIp',
    )?.message
  expect(await messageFor(0, 0)).toBeUndefined()
  expect(await messageFor(40, 19)).toBeUndefined()
  expect(await messageFor(40, 20)).toStartWith('20 of the newest 40 live sends told neither clientIp')
})

describe('live sending', () => {
  test('is ok with everything configured, and shows no secret', async () => {
    const checks = await runDeliveryChecks(validToml)
    expect(checks.every(({ status }) => status === 'ok')).toBe(true)
    expect(checks.map(({ name }) => name)).toEqual([
      'provider main',
      'routes',
      'receipts',
      'guard',
      'countries',
    ])
    expect(JSON.stringify(checks)).not.toContain(secret)
  })

  test('without a provider warns that codes stay in the inbox, and says which command adds one to which file', async () => {
    const [check, ...rest] = await runDeliveryChecks('')
    expect(check).toMatchObject({ name: 'live sending', status: 'warning' })
    expect(check?.message).toContain('stay in the inbox')
    expect(check?.remedy).toBe('Add one: otpd provider add, which writes /etc/o.toml (otpd docs providers)')
    expect(rest).toEqual([])
  })

  test('warns when all routes lead to the inbox', async () => {
    expect(await messages(validToml + route('"inbox"'), 'routes')).toEqual([
      expect.stringContaining('all routes lead to the inbox'),
    ])
  })
})

describe('a provider', () => {
  const openCircuit: OpenCircuit = {
    node: 'a',
    name: 'main',
    failure: 'no_credit',
    openUntil: nowMs + 60_000,
  }

  test('with an open circuit is a warning, without any other a fault, and is ok once it is closed', async () => {
    const withSpareToml = validToml + twilio('spare')
    expect(await messages(withSpareToml, 'provider main', [openCircuit])).toEqual([
      'warning: circuit open: no_credit',
    ])
    expect(
      await messages(withSpareToml, 'provider main', [openCircuit, { ...openCircuit, name: 'spare' }]),
    ).toEqual([expect.stringMatching(/^fault: .*no other provider is available$/)])
    const waiting = { ...openCircuit, openUntil: nowMs }
    expect(await messages(withSpareToml, 'provider main', [waiting])).toEqual([
      'warning: circuit open: no_credit',
    ])
    expect(await findProblems(withSpareToml, [{ ...waiting, failure: 'throttled' }])).toEqual([])
  })

  test('that no route uses is a warning', async () => {
    const toml = validToml + twilio('spare') + route('"main"')
    expect(await messages(toml, 'provider spare')).toEqual([expect.stringContaining('no route uses it')])
  })

  test('over unencrypted SMPP is a warning, unless it is on this machine', async () => {
    expect(await messages(validToml + smpp('smsc.example', 'tls = "off"'), 'provider smsc')).toEqual([
      expect.stringContaining('unencrypted'),
    ])
    expect(await findProblems(validToml + smpp('127.0.0.1', 'tls = "off"'))).toEqual([])
    expect(await messages(validToml + smpp('smsc.example', 'bind = "transmitter"'), 'provider smsc')).toEqual(
      [expect.stringContaining('no receipts')],
    )
  })
})

describe('routes', () => {
  test('through a provider that cannot send the channel are a warning, as another one can', async () => {
    const smsCapableProvider = twilio('able').replace(
      'from =',
      `whatsappFrom = "+15005550006"\nwhatsappContentSid = "HX${'0'.repeat(32)}"\nfrom =`,
    )
    const withSecondProvider = await messages(
      validToml + smsCapableProvider + route('"main", "able"', '', 'whatsapp'),
      'routes',
    )
    expect(withSecondProvider).toHaveLength(1)
    expect(withSecondProvider[0]).toStartWith('warning: route 1 sends whatsapp through main')
  })

  test('after a wider one are never used', async () => {
    const shadowedRoute = route('"main"', 'countries = ["NL"]\nprefixes = ["+316"]')
    expect(await messages(validToml + route('"main"') + shadowedRoute, 'routes')).toEqual([
      'warning: route 2 is never used: route 1 already matches all of its sms',
    ])
    expect(await findProblems(validToml + shadowedRoute + route('"main"'))).toEqual([])
  })

  test('that leave out allowed countries are a warning', async () => {
    expect(await messages(validToml + route('"main"', 'countries = ["NL"]'), 'routes')).toEqual([
      'warning: no route matches every phone of BE, although codes are allowed there',
    ])
    expect(await findProblems(validToml + route('"main"', 'countries = ["NL", "BE"]'))).toEqual([])
    const withDeniedCountries = validToml.replace('countries', 'deniedCountries')
    expect(await messages(withDeniedCountries + route('"main"', 'prefixes = ["+31"]'), 'routes')).toEqual([
      'warning: they match only +31; no other phone can get a code',
    ])
  })
})

describe('receipts', () => {
  test.each(['', 'publicUrl = "http://127.0.0.1:8080"'])(
    'cannot be received with the setting "%s"',
    async (line) => {
      const toml = validToml.replace(/publicUrl = .*/, line)
      expect(await messages(toml, 'receipts')).toEqual([expect.stringContaining('none from main')])
    },
  )

  test('of SMPP and of gateways on this machine need no public URL', async () => {
    const gateway = twilio('near').replace('from =', 'baseUrl = "http://127.0.0.1:9"\nfrom =')
    const toml = `[guard]\nmode = "enforce"\ncountries = ["NL"]\n${gateway}${smpp('smsc.example', '')}`
    expect(await messages(toml, 'receipts')).toEqual([])
  })
})

test('the default rate of sends is a warning, until a plan has a higher one', async () => {
  const toml = validToml.replace('sendPerMinute = 60', 'sendPerMinute = 5')
  expect(await messages(toml, 'send rate')).toMatchObject([
    expect.stringContaining('at most 5 sends a minute'),
  ])
  expect(await messages(`${toml}[plans.team]\nsendPerMinute = 100\n`, 'send rate')).toEqual([])
})

describe('the challenge of the guard', () => {
  const toml = (lines: string) => `${twilio('main')}[guard.challenge]\n${lines}`
  const service = toml('kind = "turnstile"\nsiteKey = "a"\nsecretFile = "/secret"')
  const check = async (text: string, challenge: { fault: string | undefined } | null = null) =>
    (await runDeliveryChecks(text, [], [], [], challenge)).find(({ name }) => name === 'challenge')

  test('is not mentioned without one', async () => {
    expect(await check(twilio('main'))).toBeUndefined()
  })

  test('is fine if it needs no service, or if the service knows the secret or was not called', async () => {
    expect((await check(toml('kind = "altcha"')))?.message).toBe('altcha: made and checked by this server')
    expect(await check(service, { fault: undefined })).toMatchObject({
      status: 'ok',
      message: 'turnstile answers, and knows the secret',
    })
    expect(await check(service)).toMatchObject({
      status: 'ok',
      message: 'turnstile: not called, as its secret is not in this shell',
    })
  })

  test('is a fault if the service checks no token', async () => {
    expect(await check(service, { fault: 'invalid-input-secret' })).toMatchObject({
      status: 'fault',
      message: 'turnstile checks no token: invalid-input-secret; users who pass the challenge are refused',
    })
  })

  test('is tried with a token that was never issued', async () => {
    const site = startSiteverify('turnstile')
    const called = {
      kind: 'turnstile',
      siteKey: siteverifyKeys.siteKey,
      secret: siteverifyKeys.secret,
      hostnames: [],
      timeoutMs: 5000,
      verifyUrl: site.url,
    } as const
    expect(await tryChallenge(called, '1.0.0')).toBeUndefined()
    expect(await tryChallenge({ ...called, secret: 'wrong' }, '1.0.0')).toBe('invalid-input-secret')
    await site.stop()
  })
})

describe('the guard', () => {
  test.each([
    ['off', 'off: SMS pumping'],
    ['monitor', 'monitoring only'],
  ])('in mode %s is a warning', async (mode, expectedText) => {
    const [check] = await findProblems(validToml.replace('"enforce"', `"${mode}"`))
    expect(check).toMatchObject({
      name: 'guard',
      status: 'warning',
      message: expect.stringContaining(expectedText),
    })
  })

  test('without countries warns that codes can be sent everywhere', async () => {
    expect(await messages(validToml.replace('countries', 'deniedCountries'), 'countries')).toEqual([
      'warning: codes can be sent to every country',
    ])
  })
})
