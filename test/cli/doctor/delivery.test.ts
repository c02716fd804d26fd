import { describe, expect, test } from 'bun:test'
import { deliveryChecks, type OpenCircuit } from '../../../cli/doctor/delivery.ts'
import { openProviders } from '../../../src/server/start.ts'
import { requireConfig, loadFile } from '../../helpers/config.ts'

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

async function runDeliveryChecks(toml: string, resting: OpenCircuit[] = []) {
  const config = requireConfig(loadFile(toml, { files: { '/secret': secret } }))
  const opened = openProviders(config, '1.0.0')
  try {
    const providers = await opened.list()
    return deliveryChecks({ config, providers, openCircuits: resting, nowMs, configFile: '/etc/o.toml' })
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
[guard]
mode = "enforce"
countries = ["NL", "BE"]
${twilio('main')}`

describe('live sending', () => {
  test('that lacks nothing says so, and tells no secret', async () => {
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

  test('without a provider stays in the inbox, and is told what to write where', async () => {
    const [check, ...rest] = await runDeliveryChecks('')
    expect(check).toMatchObject({ name: 'live sending', status: 'warning' })
    expect(check?.message).toContain('stay in the inbox')
    expect(check?.remedy).toContain('/etc/o.toml: [[providers]] name = "main"')
    expect(rest).toEqual([])
  })

  test('whose routes all lead to the inbox stays there', async () => {
    expect(await messages(validToml + route('"inbox"'), 'routes')).toEqual([
      expect.stringContaining('leads to the inbox'),
    ])
  })
})

describe('a provider', () => {
  const openCircuit = { name: 'main', failure: 'no_credit', openUntil: nowMs + 60_000 }

  test('that rests is a warning, the last that works a fault, and one that rested is neither', async () => {
    const withSpareToml = validToml + twilio('spare')
    expect(await messages(withSpareToml, 'provider main', [openCircuit])).toEqual([
      expect.stringMatching(/^warning: rests until .*: no_credit$/),
    ])
    expect(
      await messages(withSpareToml, 'provider main', [openCircuit, { ...openCircuit, name: 'spare' }]),
    ).toEqual([expect.stringMatching(/^fault: .*there is no other$/)])
    expect(await findProblems(withSpareToml, [{ ...openCircuit, openUntil: nowMs }])).toEqual([])
  })

  test('that no route names carries nothing', async () => {
    const toml = validToml + twilio('spare') + route('"main"')
    expect(await messages(toml, 'provider spare')).toEqual([expect.stringContaining('no route names it')])
  })

  test('in clear over SMPP is a warning, but on this machine', async () => {
    expect(await messages(validToml + smpp('smsc.example', 'tls = "off"'), 'provider smsc')).toEqual([
      expect.stringContaining('in clear'),
    ])
    expect(await findProblems(validToml + smpp('127.0.0.1', 'tls = "off"'))).toEqual([])
    expect(await messages(validToml + smpp('smsc.example', 'bind = "transmitter"'), 'provider smsc')).toEqual(
      [expect.stringContaining('no receipts')],
    )
  })
})

describe('routes', () => {
  test('to a channel that the settings are not enough for are a fault, or a warning beside one that is', async () => {
    const dead = await messages(validToml + route('"main"', '', 'whatsapp'), 'routes')
    expect(dead).toContainEqual(expect.stringMatching(/^fault: route 1 gives whatsapp to main/))
    const smsCapableProvider = twilio('able').replace(
      'from =',
      `whatsappFrom = "+15005550006"\nwhatsappContentSid = "HX${'0'.repeat(32)}"\nfrom =`,
    )
    const withSecondProvider = await messages(
      validToml + smsCapableProvider + route('"main", "able"', '', 'whatsapp'),
      'routes',
    )
    expect(withSecondProvider).toHaveLength(1)
    expect(withSecondProvider[0]).toStartWith('warning: route 1 gives whatsapp to main')
  })

  test('behind a wider one are never used', async () => {
    const shadowedRoute = route('"main"', 'countries = ["NL"]\nprefixes = ["+316"]')
    expect(await messages(validToml + route('"main"') + shadowedRoute, 'routes')).toEqual([
      'warning: route 2 is never used: route 1 takes all of its sms',
    ])
    expect(await findProblems(validToml + shadowedRoute + route('"main"'))).toEqual([])
  })

  test('that miss countries that may get codes are a warning', async () => {
    expect(await messages(validToml + route('"main"', 'countries = ["NL"]'), 'routes')).toEqual([
      'warning: none fits every phone of BE, which may get codes',
    ])
    expect(await findProblems(validToml + route('"main"', 'countries = ["NL", "BE"]'))).toEqual([])
    const withDeniedCountries = validToml.replace('countries', 'deniedCountries')
    expect(await messages(withDeniedCountries + route('"main"', 'prefixes = ["+31"]'), 'routes')).toEqual([
      'warning: they reach +31 alone; nobody else can get a code',
    ])
  })
})

describe('receipts', () => {
  test.each(['', 'publicUrl = "http://127.0.0.1:8080"'])('have nowhere to go with "%s"', async (line) => {
    const toml = validToml.replace(/publicUrl = .*/, line)
    expect(await messages(toml, 'receipts')).toEqual([expect.stringContaining('none from main')])
  })

  test('of SMPP and of gateways on this machine need no public URL', async () => {
    const gateway = twilio('near').replace('from =', 'baseUrl = "http://127.0.0.1:9"\nfrom =')
    const toml = `[guard]\nmode = "enforce"\ncountries = ["NL"]\n${gateway}${smpp('smsc.example', '')}`
    expect(await findProblems(toml)).toEqual([])
  })
})

describe('the guard', () => {
  test.each([
    ['off', 'it is off'],
    ['monitor', 'only watches'],
  ])('in mode %s is a warning', async (mode, expectedText) => {
    const [check] = await findProblems(validToml.replace('"enforce"', `"${mode}"`))
    expect(check).toMatchObject({
      name: 'guard',
      status: 'warning',
      message: expect.stringContaining(expectedText),
    })
  })

  test('without countries lets codes go everywhere', async () => {
    expect(await messages(validToml.replace('countries', 'deniedCountries'), 'countries')).toEqual([
      'warning: every country of the world gets codes',
    ])
  })
})
