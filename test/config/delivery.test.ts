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
  test('has the settings of its kind, its secrets from files that begin at the configuration', () => {
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

  test('has secrets from the environment, under any name and under ours for it', () => {
    for (const name of ['TWILIO_TOKEN', 'OTPD_SECRET_TWILIO']) {
      const text = main.replace('authTokenFile = "secrets/twilio"', `authTokenEnv = "${name}"`)
      const { delivery } = requireConfig(at(text, { env: { HOME: '/home/ada', [name]: 'a-token' } }))
      expect(delivery.providers[0]?.values['authToken']).toBe('a-token')
    }
  })

  test('is shown with its secrets covered', () => {
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

test('every fault is told at once, each with its line and a remedy', () => {
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
    '9 There is a provider main already.',
    '10 There is no such kind of provider.',
    '16 authToken is a secret, and this file is not.',
    '17 A provider of the kind twilio has no form.',
    '15 accountSid does not look right.',
    '13 from is missing.',
    '20 This cannot name a provider.',
    '23 "OTPD_TOKEN" is a setting\'s name.',
    '28 Twilio has no telegram.',
    '32 countries does not look right.',
    '33 What stays in the inbox goes nowhere else.',
    '33 There is no provider mian.',
    '37 A route has no provider.',
    '36 The route has no channel.',
    '36 prefixes does not look right.',
    '36 The route names no provider.',
  ])
  expect(problems.every(({ remedy }) => remedy.length > 0)).toBe(true)
  expect(problems.find(({ message }) => message.includes('kind of provider'))?.remedy).toContain('twilio')
  expect(JSON.stringify(problems)).not.toContain('in the open')
})

test('a line of the second table is the line of the second table', () => {
  const { problems } = at(`${main}\n${main.replace('"main"', '"spare"').replace('+15005550006', '')}`, {
    files,
  })
  expect(problems.map(({ source }) => source)).toEqual([`${path}:13`])
})

test.each([
  ['a secret that is nowhere', main, 'There is no file /etc/otpd/secrets/twilio.'],
  [
    'a variable that is not set',
    main.replace('authTokenFile = "secrets/twilio"', 'authTokenEnv = "NONE"'),
    'There is no variable "NONE", or it is empty.',
  ],
  ['a plain table', '[providers]\nname = "main"\n', 'providers is a list of tables.'],
  ['both a file and a variable', `${main}authTokenEnv = "TOKEN"\n`, 'authToken is given twice.'],
])('%s is told', (_, text, message) => {
  const options = message.includes('no file') ? {} : { files }
  expect(at(text, options).problems.map((problem) => problem.message)).toEqual([message])
})

test('routes are read in their order', () => {
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
