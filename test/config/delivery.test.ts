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
  ['a secret file that does not exist', main, 'There is no file /etc/otpd/secrets/twilio.'],
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
  const options = message.includes('no file') ? {} : { files }
  expect(at(text, options).problems.map((problem) => problem.message)).toEqual([message])
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
