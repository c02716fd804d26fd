import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { settingList } from '../../../src/config/config.ts'
import { load } from '../../helpers/config.ts'
import { defineProperty } from '../property.ts'

const names = settingList.flatMap(({ name, notInFile }) => (notInFile ? [] : [name]))
const variables = settingList.map(({ variable }) => variable)

const value = fc.oneof(
  fc.constantFrom(
    '',
    '0',
    '-1',
    '1',
    '5',
    '65536',
    '1e3',
    'true',
    'off',
    'on',
    'enforce',
    'monitor',
    'open',
    '127.0.0.1:0',
    '[::1]:8080',
    ':8080',
    'https://a.example',
    'http://127.0.0.1:1',
    '10.0.0.0/8',
    '::/0',
    '*',
    'US,CA',
    '+1212',
    'ada@example.com',
    '/etc/hosts',
    '~',
    '9'.repeat(400),
    'a,b,,c',
    '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f',
  ),
  fc.string({ unit: 'binary' }),
)

const tomlValue: fc.Arbitrary<string> = fc.oneof(
  value.map((text) => JSON.stringify(text)),
  fc.integer().map(String),
  fc.double().map(String),
  fc.boolean().map(String),
  fc.array(value, { maxLength: 3 }).map((items) => JSON.stringify(items)),
  fc.constantFrom(
    '{}',
    '{ a = 1 }',
    '[]',
    '[[]]',
    '2026-11-20T12:00:00Z',
    'inf',
    'nan',
    '0x10',
    "'''x",
    '""',
  ),
)
const otherKeys = [
  'name',
  'kind',
  'from',
  'providers',
  'channel',
  'authTokenEnv',
  'url',
  'countries',
  'projects',
  'sms',
  'text',
  '__proto__',
  'constructor',
]
const line = fc.oneof(
  fc.tuple(fc.constantFrom(...names), tomlValue).map(([name, text]) => `${name} = ${text}`),
  fc.tuple(fc.constantFrom(...otherKeys), tomlValue).map(([name, text]) => `${name} = ${text}`),
  fc
    .constantFrom(
      'providers',
      'routes',
      'templates',
      'guard',
      'plans.free',
      'plans."x y"',
      'server',
      'limits',
      'a.b',
      '__proto__',
    )
    .chain((name) => fc.constantFrom(`[${name}]`, `[[${name}]]`)),
  fc.string({ unit: 'binary', maxLength: 20 }),
)
const file = fc.oneof(
  fc.array(line, { maxLength: 12 }).map((lines) => lines.join('\n')),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.uint8Array({ maxLength: 100 }),
)

function checkLoaded(loaded: ReturnType<typeof load>) {
  const { config, problems, settings } = loaded
  expect(config === null).toBe(problems.length > 0)
  for (const { message, remedy, source } of problems) {
    expect([message, remedy, source].every((text) => text.length > 0)).toBe(true)
    // Each is one printable line.
    expect(message + source).not.toMatch(/\p{Cc}/u)
  }
  expect(settings.length).toBeGreaterThan(20)
}

export const configProperties = [
  defineProperty('a configuration file of any content is valid, or its problems are reported', 2_000, () => ({
    property: fc.property(file, (content) => {
      checkLoaded(load({ flags: { config: '/etc/o.toml' }, files: { '/etc/o.toml': content } }))
    }),
  })),

  defineProperty('variables of any content are valid, or their problems are reported', 2_000, () => {
    const env = fc.dictionary(
      fc.oneof(fc.constantFrom(...variables), fc.constantFrom('OTPD_X', 'HOME', 'XDG_DATA_HOME')),
      value,
      { maxKeys: 6 },
    )
    return { property: fc.property(env, (environment) => checkLoaded(load({ env: environment }))) }
  }),

  defineProperty('a problem never contains the master key', 1_000, () => {
    const key = fc.oneof(
      fc.string({ unit: 'binary', minLength: 6 }),
      fc.string({ unit: fc.constantFrom(...'0123456789abcdefg'), minLength: 60, maxLength: 68 }),
    )
    const property = fc.property(key, (secret) => {
      const loaded = load({ env: { HOME: '/home/ada', OTPD_MASTER_KEY: secret } })
      checkLoaded(loaded)
      const output = JSON.stringify([loaded.problems, loaded.settings])
      if (secret.trim().length > 5) expect(output).not.toContain(JSON.stringify(secret).slice(1, -1))
    })
    return { property }
  }),
]
