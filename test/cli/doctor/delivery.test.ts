import { describe, expect, test } from 'bun:test'
import { deliveryChecks, type Rest } from '../../../cli/doctor/delivery.ts'
import { openProviders } from '../../../src/server/start.ts'
import { configOf, loadFile } from '../../helpers/config.ts'

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
const smpp = (host: string, more: string) => `
[[providers]]
name = "smsc"
kind = "smpp"
host = "${host}"
port = 2775
systemId = "me"
passwordFile = "/secret"
from = "ACME"
${more}
`
const route = (providers: string, more = '', channel = 'sms') =>
  `\n[[routes]]\nchannel = "${channel}"\nproviders = [${providers}]\n${more}\n`

async function checksOf(toml: string, resting: Rest[] = []) {
  const config = configOf(loadFile(toml, { files: { '/secret': secret } }))
  const opened = openProviders(config, '1.0.0')
  try {
    const providers = await opened.list()
    return deliveryChecks({ config, providers, resting, nowMs, configFile: '/etc/o.toml' })
  } finally {
    opened.close()
  }
}

const amiss = async (toml: string, resting?: Rest[]) =>
  (await checksOf(toml, resting)).filter(({ status }) => status !== 'ok')

const messages = async (toml: string, name: string, resting?: Rest[]) =>
  (await amiss(toml, resting)).flatMap((check) =>
    check.name === name ? `${check.status}: ${check.message}` : [],
  )

const sound = `
[server]
publicUrl = "https://otp.example.com"
trustedProxies = ["127.0.0.1"]
[guard]
mode = "enforce"
countries = ["NL", "BE"]
${twilio('main')}`

describe('live sending', () => {
  test('that lacks nothing says so, and tells no secret', async () => {
    const checks = await checksOf(sound)
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
    const [check, ...rest] = await checksOf('')
    expect(check).toMatchObject({ name: 'live sending', status: 'warning' })
    expect(check?.message).toContain('stay in the inbox')
    expect(check?.remedy).toContain('/etc/o.toml: [[providers]] name = "main"')
    expect(rest).toEqual([])
  })

  test('whose routes all lead to the inbox stays there', async () => {
    expect(await messages(sound + route('"inbox"'), 'routes')).toEqual([
      expect.stringContaining('leads to the inbox'),
    ])
  })
})

describe('a provider', () => {
  const rest = { name: 'main', failure: 'no_credit', restingUntil: nowMs + 60_000 }

  test('that rests is a warning, the last that works a fault, and one that rested is neither', async () => {
    const both = sound + twilio('spare')
    expect(await messages(both, 'provider main', [rest])).toEqual([
      expect.stringMatching(/^warning: rests until .*: no_credit$/),
    ])
    expect(await messages(both, 'provider main', [rest, { ...rest, name: 'spare' }])).toEqual([
      expect.stringMatching(/^fault: .*there is no other$/),
    ])
    expect(await amiss(both, [{ ...rest, restingUntil: nowMs }])).toEqual([])
  })

  test('that no route names carries nothing', async () => {
    const toml = sound + twilio('spare') + route('"main"')
    expect(await messages(toml, 'provider spare')).toEqual([expect.stringContaining('no route names it')])
  })

  test('in clear over SMPP is a warning, but on this machine', async () => {
    expect(await messages(sound + smpp('smsc.example', 'tls = "off"'), 'provider smsc')).toEqual([
      expect.stringContaining('in clear'),
    ])
    expect(await amiss(sound + smpp('127.0.0.1', 'tls = "off"'))).toEqual([])
    expect(await messages(sound + smpp('smsc.example', 'bind = "transmitter"'), 'provider smsc')).toEqual([
      expect.stringContaining('no receipts'),
    ])
  })
})

describe('routes', () => {
  test('to a channel that the settings are not enough for are a fault, or a warning beside one that is', async () => {
    const dead = await messages(sound + route('"main"', '', 'whatsapp'), 'routes')
    expect(dead).toContainEqual(expect.stringMatching(/^fault: route 1 gives whatsapp to main/))
    const able = twilio('able').replace(
      'from =',
      `whatsappFrom = "+15005550006"\nwhatsappContentSid = "HX${'0'.repeat(32)}"\nfrom =`,
    )
    const withAnother = await messages(sound + able + route('"main", "able"', '', 'whatsapp'), 'routes')
    expect(withAnother).toHaveLength(1)
    expect(withAnother[0]).toStartWith('warning: route 1 gives whatsapp to main')
  })

  test('behind a wider one are never used', async () => {
    const behind = route('"main"', 'countries = ["NL"]\nprefixes = ["+316"]')
    expect(await messages(sound + route('"main"') + behind, 'routes')).toEqual([
      'warning: route 2 is never used: route 1 takes all of its sms',
    ])
    expect(await amiss(sound + behind + route('"main"'))).toEqual([])
  })

  test('that miss countries that may get codes are a warning', async () => {
    expect(await messages(sound + route('"main"', 'countries = ["NL"]'), 'routes')).toEqual([
      'warning: none fits every phone of BE, which may get codes',
    ])
    expect(await amiss(sound + route('"main"', 'countries = ["NL", "BE"]'))).toEqual([])
    const anywhere = sound.replace('countries', 'deniedCountries')
    expect(await messages(anywhere + route('"main"', 'prefixes = ["+31"]'), 'routes')).toEqual([
      'warning: they reach +31 alone; nobody else can get a code',
    ])
  })
})

describe('receipts', () => {
  test.each(['', 'publicUrl = "http://127.0.0.1:8080"'])('have nowhere to go with "%s"', async (line) => {
    const toml = sound.replace(/publicUrl = .*/, line)
    expect(await messages(toml, 'receipts')).toEqual([expect.stringContaining('none from main')])
  })

  test('of SMPP and of gateways on this machine need no public URL', async () => {
    const gateway = twilio('near').replace('from =', 'baseUrl = "http://127.0.0.1:9"\nfrom =')
    const toml = `[guard]\nmode = "enforce"\ncountries = ["NL"]\n${gateway}${smpp('smsc.example', '')}`
    expect(await amiss(toml)).toEqual([])
  })
})

describe('the guard', () => {
  test.each([
    ['off', 'it is off'],
    ['monitor', 'only watches'],
  ])('in mode %s is a warning', async (mode, words) => {
    const [check] = await amiss(sound.replace('"enforce"', `"${mode}"`))
    expect(check).toMatchObject({ name: 'guard', status: 'warning', message: expect.stringContaining(words) })
  })

  test('without countries lets codes go everywhere', async () => {
    expect(await messages(sound.replace('countries', 'deniedCountries'), 'countries')).toEqual([
      'warning: every country of the world gets codes',
    ])
  })
})
