import { describe, expect, test } from 'bun:test'
import { baseUrlField, defineKind, findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { providerKinds } from '../../../src/delivery/providers/all-provider-kinds.ts'
import { providerNeeds } from '../../helpers/provider-server.ts'

const received: unknown[] = []
const kind = defineKind({
  kind: 'example',
  title: 'Example',
  channels: ['sms'],
  fields: {
    key: { description: 'the key', required: true, secret: true, pattern: /^k\w+$/, example: 'k1' },
    mode: { description: 'the mode', choices: ['fast', 'slow'], default: 'fast' },
    body: { description: 'the body', multiline: true },
    from: { description: 'the sender' },
    pool: { description: 'the pool' },
    user: { description: 'the user' },
    password: { description: 'the password', secret: true },
    baseUrl: baseUrlField('https://api.example.com'),
  },
  oneOf: ['from', 'pool'],
  together: [['user', 'password']],
  create(values) {
    received.push(values)
    return { channels: ['sms'], send: () => Promise.reject(new Error('never sent')) }
  },
})
const right = { key: 'k1', from: 'Acme' }
const findFaults = (values: Record<string, string>) =>
  findSettingFaults(kind, values).map(({ name, fault }) => `${name} ${fault}`)

describe('settings', () => {
  test('that are valid have no faults, and get their defaults and no trailing slashes', () => {
    expect(findFaults(right)).toEqual([])
    kind.create({ ...right, baseUrl: 'https://eu.example.com/v2//' }, providerNeeds())
    expect(received.at(-1)).toMatchObject({ key: 'k1', mode: 'fast', baseUrl: 'https://eu.example.com/v2' })
    kind.create(right, providerNeeds())
    expect(received.at(-1)).toMatchObject({ baseUrl: 'https://api.example.com', body: undefined })
  })

  test('have all their faults reported at once', () => {
    expect(findFaults({ kye: 'k1', mode: 'odd', user: 'u', baseUrl: 'http://example.com' })).toEqual([
      'kye is not known',
      'key is missing',
      'mode is not one of the choices',
      'baseUrl is not an https URL',
      'from is missing',
      'password is missing',
    ])
  })

  test.each([
    [{ key: '' }, 'key is empty'],
    [{ key: 'x' }, 'key does not look right'],
    [{ key: 'k1\n' }, 'key does not look right'],
    [{ user: 'a\r\nb: c', password: 'p' }, 'user does not look right'],
    [{ pool: 'p' }, 'from conflicts with pool'],
    [{ password: 'p' }, 'user is missing'],
    [{ constructor: 'p' }, 'constructor is not known'],
  ])('%j are faulty: %s', (changes, fault) => {
    expect(findFaults({ ...right, ...changes })).toEqual([fault])
  })

  test.each([
    ['aws-sms', 'originationIdentity', 'My Shop', 'MyShop'],
    ['aws-sms', 'originationIdentity', '+1 206 555 0152', '+12065550152'],
    ['aws-sms', 'voiceOriginationIdentity', '(206) 5550152', 'pool-1234567890abcdef0'],
    [
      'aws-sms',
      'configurationSet',
      'my set',
      'arn:aws:sms-voice:eu-central-1:123456789012:configuration-set/otp',
    ],
    ['aws-sms', 'protectConfigurationId', 'protect 1', 'protect-1234567890abcdef0'],
    ['aws-notify', 'configurationSet', 'my set', 'my-set'],
    ['aws-notify', 'templates', 'en = english.001', 'en = notify-code-verification-english-001'],
    ['plivo', 'powerpackUuid', 'my pack', '86bbb125-97bb-4d72-89fd-81d5c515b015'],
  ])('%s: the provider would refuse %s = %j, not %j', (name, field, wrong, valid) => {
    const real = providerKinds.find((one) => one.kind === name)
    if (real === undefined) throw new Error(`there is no kind ${name}`)
    const faultsOf = (value: string) =>
      findSettingFaults(real, { [field]: value }).filter((fault) => fault.name === field)
    expect(faultsOf(wrong)).toMatchObject([{ fault: 'does not look right' }])
    expect(faultsOf(valid)).toEqual([])
  })

  test('may have several lines if the field allows it', () => {
    expect(findFaults({ ...right, body: 'a\nb' })).toEqual([])
  })

  test.each([
    ['https://api.example.com', true],
    ['https://api.example.com:8443/base/', true],
    ['http://localhost:8080', true],
    ['http://127.0.0.1:8080', true],
    ['http://[::1]:8080', true],
    ['http://api.example.com', false],
    ['http://127.0.0.1.example.com', false],
    ['http://localhost.example.com', false],
    ['https://user:secret@api.example.com', false],
    ['ftp://api.example.com', false],
    ['api.example.com', false],
    [' https://api.example.com', false],
  ])('may have the address %j: %p', (baseUrl, isRight) => {
    expect(findFaults({ ...right, baseUrl })).toEqual(isRight ? [] : ['baseUrl is not an https URL'])
  })

  test.each(['https://api.example.com?key=1', 'https://api.example.com/#part'])(
    'may not have the base URL %j, to which paths are appended',
    (baseUrl) => {
      expect(findFaults({ ...right, baseUrl })).toEqual(['baseUrl has a query or a fragment'])
    },
  )

  test('never appear in the messages about their faults', () => {
    const secret = 'hunter2-hunter2'
    const values = {
      key: secret,
      mode: secret,
      baseUrl: secret,
      user: `${secret}\n`,
      from: secret,
      pool: secret,
    }
    expect(JSON.stringify(findSettingFaults(kind, values))).not.toContain('hunter2')
  })

  test('with faults create no provider', () => {
    expect(() => kind.create({ key: 'x' }, providerNeeds())).toThrow(
      'example: the settings were not validated',
    )
  })
})

describe('the list of kinds', () => {
  test('names each kind once, and every kind has a channel', () => {
    const names = providerKinds.map((one) => one.kind)
    expect(new Set(names).size).toBe(names.length)
    expect(names).toContain('twilio')
    for (const { channels } of providerKinds) expect(channels.length).toBeGreaterThan(0)
  })

  test('marks fields that look like secrets as secret', () => {
    const open = providerKinds.flatMap(({ kind: name, fields }) =>
      Object.entries(fields)
        .filter(([field, { secret }]) => /(secret|token|password|accesskey)$/i.test(field) && !secret)
        .map(([field]) => `${name}.${field}`),
    )
    expect(open).toEqual([])
  })

  test('names an HTTPS address by default for each API that it calls', () => {
    const addresses = providerKinds.flatMap(({ fields }) =>
      Object.values(fields).flatMap(({ url, default: address }) => (url ? (address ?? []) : [])),
    )
    expect(addresses.length).toBeGreaterThan(10)
    expect(addresses.filter((address) => !address.startsWith('https://'))).toEqual([])
  })
})

test('each setting of a certain form shows one, so that a mistake can be corrected', () => {
  const without = providerKinds.flatMap((one) =>
    Object.entries(one.fields).flatMap(([name, { pattern, secret, example }]) =>
      pattern && !secret && example === undefined ? [`${one.kind} ${name}`] : [],
    ),
  )
  expect(without).toEqual([])
})
