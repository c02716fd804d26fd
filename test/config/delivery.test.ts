import { describe, expect, test } from 'bun:test'
import { requireConfig, load } from '../helpers/config.ts'

const path = '/etc/otpd/otpd.toml'
const at = (text: string, options: Parameters<typeof load>[0] = {}) =>
  load({ ...options, files: { [path]: text, ...options.files } })
const sid = `AC${'0'.repeat(32)}`
const main = `[[providers]]
name = "main"
kind = "twilio"
accountSid = "${sid}"
authTokenFile = "secrets/twilio"
from = "+15005550006"
`
const files = { '/etc/otpd/secrets/twilio': 'a-token\n' }

describe('a provider', () => {
  test('has the settings of its kind, with secrets from files relative to the configuration file', () => {
    expect(requireConfig(at(main, { files })).delivery).toEqual({
      providers: [
        {
          name: 'main',
          kind: 'twilio',
          values: { accountSid: sid, authToken: 'a-token', from: '+15005550006' },
        },
      ],
      routes: [],
    })
  })

  test('reads secrets from environment variables of any name, OTPD_SECRET_ included', () => {
    for (const name of ['TWILIO_TOKEN', 'OTPD_SECRET_TWILIO']) {
      const text = main.replace('authTokenFile = "secrets/twilio"', `authTokenEnv = "${name}"`)
      const { delivery } = requireConfig(at(text, { env: { HOME: '/home/ada', [name]: 'a-token' } }))
      expect(delivery.providers[0]?.values['authToken']).toBe('a-token')
    }
  })

  test('is shown with its secrets masked', () => {
    const { settings } = at(main, { files })
    expect(settings).toContainEqual({
      setting: 'providers.main.authToken',
      value: '(set)',
      origin: `${path}:5`,
    })
    expect(settings).toContainEqual({
      setting: 'providers.main.from',
      value: '+15005550006',
      origin: `${path}:6`,
    })
    expect(JSON.stringify(settings)).not.toContain('a-token')
  })
})

test('reports every problem at once, each with its line and a remedy', () => {
  const text = `${main}
[[providers]]
name = "main"
kind = "twillio"

[[providers]]
name = "spare"
kind = "twilio"
accountSid = "AC1"
authToken = "in the open"
form = "+1500"

[[providers]]
name = "inbox"
kind = "twilio"
accountSid = "${sid}"
authTokenEnv = "OTPD_TOKEN"
from = "+15005550006"

[[routes]]
channel = "telegram"
providers = ["main"]

[[routes]]
channel = "sms"
countries = ["Netherlands"]
providers = ["mian", "inbox"]

[[routes]]
prefixes = ["0031"]
provider = ["main"]
`
  const { config, problems } = at(text, { files })
  expect(config).toBeNull()
  const problemTexts = problems.map(({ source, message }) => `${source.replace(`${path}:`, '')} ${message}`)
  expect(problemTexts).toEqual([
    '9 Another provider is already named main.',
    '10 There is no such provider kind.',
    '13 from is missing.',
    '15 accountSid does not look right.',
    '16 authToken is a secret and must not be in this file.',
    '17 Providers of kind twilio have no setting form.',
    '20 This is not a valid provider name.',
    '23 "OTPD_TOKEN" is reserved: variables that begin with OTPD_ are settings.',
    '28 Twilio does not support telegram.',
    '32 countries has "Netherlands", which is not valid.',
    '33 inbox cannot be combined with other providers.',
    '33 There is no provider mian.',
    '36 The route has no valid channel.',
    '36 prefixes has "0031", which is not valid.',
    '36 The route has no providers.',
    '37 Routes have no setting provider.',
  ])
  expect(problems.every(({ remedy }) => remedy.length > 0)).toBe(true)
  expect(problems.find(({ message }) => message.includes('provider kind'))?.remedy).toContain('twilio')
  expect(JSON.stringify(problems)).not.toContain('in the open')
})

test('a wrong name in the list of providers is the only problem of its route', () => {
  const route = '[[routes]]\nchannel = "sms"\nproviders = '
  const messages = (list: string) =>
    at(`${main}${route}${list}\n`, { files }).problems.map(({ message }) => message)
  expect(messages('["main", "Spare"]')).toEqual(['providers has "Spare", which is not valid.'])
  expect(messages('"main"')).toEqual(['providers is not a list.'])
  expect(messages('[]')).toEqual(['The route has no providers.'])
})

test('a list where one string is expected names the key and how to write it', () => {
  const text = `[[providers]]
name = "gateway"
kind = "http-template"
url = "https://sms.example.com"
body = "{{text}}"
channels = ["sms"]
`
  expect(at(text).problems).toEqual([
    {
      source: `${path}:6`,
      message: 'channels must be a string.',
      remedy: 'Write its values in one string, separated by commas: channels = "…"',
    },
  ])
})

test('a problem in the second table is reported with its own line', () => {
  const { problems } = at(`${main}\n${main.replace('"main"', '"spare"').replace('+15005550006', '')}`, {
    files,
  })
  expect(problems.map(({ source }) => source)).toEqual([`${path}:13`])
})

test.each([
  ['a secret file that does not exist', main, 'There is no file of the name in authTokenFile.'],
  [
    'a secret where the name of a file is meant, without repeating it',
    main.replace('"secrets/twilio"', '"c0ffee00c0ffee00c0ffee00c0ffee00"'),
    'There is no file of the name in authTokenFile.',
  ],
  [
    'the name of a variable as in a shell',
    main.replace('authTokenFile = "secrets/twilio"', 'authTokenEnv = "${TOKEN}"'),
    'authTokenEnv has a $ before the name.',
  ],
  [
    'an unknown placeholder',
    '[[providers]]\nname = "gateway"\nkind = "http-template"\nurl = "https://sms.example.com/?to={{number}}"\n',
    'url has {{number}}, which is no placeholder.',
  ],
  [
    'an unknown placeholder next to a known one',
    '[[providers]]\nname = "gateway"\nkind = "http-template"\nurl = "https://sms.example.com/?to={{to}}&text={{text}}"\nreportUrl = "https://sms.example.com/"\nreportBody = "{{messageId}} {{foo}}"\n',
    'reportBody has {{foo}}, which is no placeholder.',
  ],
  ['a setting of routes outside of them', `strategy = "cost"\n${main}`, 'There is no setting strategy.'],
  [
    'a variable that is not set',
    main.replace('authTokenFile = "secrets/twilio"', 'authTokenEnv = "NONE"'),
    'The environment variable "NONE" is empty or not set.',
  ],
  [
    'a secret where the name of a variable is meant, without repeating it',
    main.replace('authTokenFile = "secrets/twilio"', 'authTokenEnv = "c0ffee00c0ffee00c0ffee00c0ffee00"'),
    'authTokenEnv must be the name of an environment variable; this is none that is set.',
  ],
  [
    'a carrier that needs a template without one',
    '[[providers]]\nname = "aws"\nkind = "aws-notify"\nregion = "eu-central-1"\naccessKeyId = "AKIDEXAMPLE0123456"\n' +
      'notifyConfigurationId = "nc-1"\nsecretAccessKeyFile = "secrets/twilio"\n',
    'templates is missing.',
  ],
  [
    'a service id of the wrong form',
    main
      .replace('kind = "twilio"', 'kind = "twilio-verify"\nserviceSid = "VA123"')
      .replace(/from = .*\n/, ''),
    'serviceSid does not look right.',
  ],
  ['a switch in quotes', `${main}feedback = "no"\n`, 'feedback must be true or false.'],
  ['a plain table', '[providers]\nname = "main"\n', 'providers must be a list of tables.'],
  ['both a file and a variable', `${main}authTokenEnv = "TOKEN"\n`, 'authToken is set twice.'],
])('reports %s', (_, text, message) => {
  const env = { HOME: '/root', TOKEN: 't' }
  const options = message.includes('no file') ? { env } : { files, env }
  const { problems } = at(text, options)
  expect(problems.map((problem) => problem.message)).toEqual([message])
  expect(JSON.stringify(problems)).not.toContain('c0ffee')
})

test.each([
  ['countries = ["UK"]', 'countries has "UK", which is not valid.', 'Write ["GB"].'],
  ['countries = ["Germany"]', 'countries has "Germany", which is not valid.', 'Write ["DE"].'],
  ['countries = ["XX"]', 'countries has "XX", which is not valid.', 'Write it as ["NL", "BE"].'],
  ['prefixes = ["49"]', 'prefixes has "49", which is not valid.', 'Write ["+49"].'],
  ['country = "NL"', 'Routes have no setting country.', 'Did you mean countries?'],
  ['providers = ["mian"]', 'There is no provider mian.', 'Did you mean main?'],
])('%s of a route says what to write', (line, message, remedy) => {
  const providers = line.startsWith('providers') ? '' : 'providers = ["main"]\n'
  const { problems } = at(`${main}[[routes]]\nchannel = "sms"\n${providers}${line}\n`, { files })
  expect(problems).toMatchObject([{ message, remedy }])
})

test('a route on a channel that none of its providers is set up for says what they lack', () => {
  const route = '[[routes]]\nchannel = "voice"\nproviders = ["main"]\n'
  expect(at(`${main}${route}`, { files }).problems).toMatchObject([
    {
      message: 'No provider of the route is set up for voice.',
      remedy: 'Add voiceFrom to main, or remove the route.',
    },
  ])
  // The server warns of the others.
  const calls = `${main}voiceFrom = "+15005550001"\n`
  const both = calls + main.replace('"main"', '"spare"') + route.replace('"main"', '"main", "spare"')
  expect(at(both, { files }).problems).toEqual([])
})

test('a provider of a chosen set of channels is not set up for the others', () => {
  const text = `[[providers]]
name = "verify"
kind = "prelude"
apiTokenFile = "secrets/twilio"
[[routes]]
channel = "voice"
providers = ["verify"]
`
  expect(at(text, { files }).problems).toMatchObject([
    { remedy: 'Add voice to the channels of verify, or remove the route.' },
  ])
})

test.each([
  ['', 'rcs to the channels of verify and rcsFrom to verify'],
  ['rcsFrom = "Acme"\n', 'rcs to the channels of verify'],
  ['channels = "sms, rcs"\n', 'rcsFrom to verify'],
])('a provider with %j is not set up for a channel that needs a setting, too', (settings, missing) => {
  const text = `[[providers]]
name = "verify"
kind = "vonage-verify"
apiKey = "abcd1234"
apiSecretFile = "secrets/twilio"
brand = "Acme"
${settings}[[routes]]
channel = "rcs"
providers = ["verify"]
`
  expect(at(text, { files }).problems).toMatchObject([{ remedy: `Add ${missing}, or remove the route.` }])
})

test('routes keep the order of the file', () => {
  const text = `${main}
[[routes]]
channel = "sms"
countries = ["NL", "BE"]
prefixes = ["+31"]
applications = ["app_01jd3m2k5xe8r9s0t1v2w3x4y5"]
providers = ["main"]

[[routes]]
channel = "sms"
providers = ["inbox"]
`
  expect(requireConfig(at(text, { files })).delivery.routes).toEqual([
    {
      channel: 'sms',
      countries: ['NL', 'BE'],
      prefixes: ['+31'],
      applications: ['app_01jd3m2k5xe8r9s0t1v2w3x4y5'],
      providers: ['main'],
    },
    { channel: 'sms', countries: [], prefixes: [], applications: [], providers: ['inbox'] },
  ])
})

test('a command that sends nothing needs no secret of a provider, and sees the settings of the server', () => {
  const text = main.replace('authTokenFile = "secrets/twilio"', 'authTokenEnv = "TOKEN"')
  const loadAs = (env: Record<string, string>, use: 'serve' | 'host command') =>
    load(
      {
        flags: { config: '/etc/o.toml' },
        env: { HOME: '/home/ada', ...env },
        files: { '/etc/o.toml': text },
      },
      { use },
    )
  expect(loadAs({}, 'serve').config).toBe(null)
  const { config, settings } = loadAs({}, 'host command')
  expect(config?.delivery.providers).toMatchObject([{ name: 'main' }])
  const rows = (list: typeof settings) => list.filter(({ setting }) => setting.startsWith('providers.'))
  expect(rows(settings)).toEqual(rows(loadAs({ TOKEN: 'secret' }, 'serve').settings))
})
