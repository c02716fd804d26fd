import { describe, expect, test } from 'bun:test'
import { load, requireConfig } from '../helpers/config.ts'

const path = '/etc/otpd/otpd.toml'
const provider = (name: string, price = '') => `[[providers]]
name = "${name}"
kind = "twilio"
accountSid = "AC${'0'.repeat(32)}"
authTokenFile = "token"
from = "+15005550006"
${price}
`
const price = 'price = { default = "0.05" }'
const currency = '[prices]\ncurrency = "EUR"\n'
const route = (strategy: string) => `[[routes]]
channel = "sms"
providers = ["main", "spare"]
strategy = ${strategy}
`
const loadText = (text: string) => load({ files: { [path]: text, '/etc/otpd/token': 'a-token\n' } })
const lineOf = (text: string, start: string) =>
  text.split('\n').findLastIndex((line) => line.startsWith(start)) + 1

describe('the strategy of a route', () => {
  const priced = currency + provider('main', price) + provider('spare', price)

  test.each(['order', 'cost', 'conversion', 'balanced'])('may be %s', (strategy) => {
    const loaded = loadText(priced + route(`"${strategy}"`))
    expect(requireConfig(loaded).delivery.routes).toMatchObject([{ strategy, providers: ['main', 'spare'] }])
    expect(loaded.settings).toContainEqual({
      setting: 'routes.1.strategy',
      value: strategy,
      origin: expect.stringContaining(path),
    })
  })

  test('is absent unless it is set', () => {
    const text = priced + route('"cost"').replace(/strategy.*/, '')
    expect(requireConfig(loadText(text)).delivery.routes[0]).not.toHaveProperty('strategy')
  })

  test.each(['cost', 'balanced'])('%s needs the prices of each provider', (strategy) => {
    const text = currency + provider('main', price) + provider('spare') + route(`"${strategy}"`)
    expect(loadText(text).problems).toEqual([
      {
        source: `${path}:${lineOf(text, 'strategy')}`,
        message: `The strategy ${strategy} needs prices, and the provider spare has none.`,
        remedy: 'Add price = { default = "0.05" } to it, or use the strategy conversion.',
      },
    ])
  })

  test('conversion and order need none', () => {
    for (const strategy of ['conversion', 'order'])
      requireConfig(loadText(provider('main') + provider('spare') + route(`"${strategy}"`)))
  })

  test('is refused if it is none, with what to write', () => {
    const text = priced + route('"costs"')
    expect(loadText(text).problems).toEqual([
      {
        source: `${path}:${lineOf(text, 'strategy')}`,
        message: 'The route has no valid strategy.',
        remedy: expect.stringContaining('cost'),
      },
    ])
    expect(loadText(priced + route('1')).problems[0]?.remedy).toBe(
      'Use one of order, cost, conversion, balanced.',
    )
  })
})
