import { expect, test } from 'bun:test'
import { findListing } from '../../../src/domain/guard/listing.ts'
import type { ListRule } from '../../../src/domain/model/list-rule.ts'

const now = 1_000
const message = { appId: 'app_web', phone: '+14155550100', country: 'US', clientIp: '203.0.113.7' }

/** Makes rules of `allow prefix +1415 [application]`. */
const rules = (...texts: string[]): ListRule[] =>
  texts.map((text, index) => {
    const [effect, target, value = '', appId = null] = text.split(' ')
    return {
      id: `rul_${index}`,
      effect: effect as ListRule['effect'],
      target: target as ListRule['target'],
      value,
      appId,
      createdAt: 0,
      expiresAt: null,
    }
  })

const nothing = { isDenied: false, allowedBy: null }
const denied = { isDenied: true, allowedBy: null }
const allowedBy = (kind: 'phone' | 'destination' | 'network') => ({ isDenied: false, allowedBy: kind })

test.each([
  ['no rule matches', ['allow country DE', 'deny prefix +1416', 'deny network 203.0.114.0/24'], nothing],
  ['a country', ['deny country US'], denied],
  ['a prefix before its country', ['allow prefix +1415', 'deny country US'], allowedBy('destination')],
  ['a longer prefix before a shorter one', ['allow prefix +1', 'deny prefix +1415'], denied],
  [
    'a phone before every prefix',
    ['deny prefix +1415555010', 'allow phone +14155550100'],
    allowedBy('phone'),
  ],
  ['another phone', ['allow phone +14155550101'], nothing],
  ['a network', ['allow network 203.0.113.0/24'], allowedBy('network')],
  ['the narrowest network', ['allow network 203.0.113.0/24', 'deny network 203.0.113.7'], denied],
  [
    'deny beats allow between destination and network',
    ['allow phone +14155550100', 'deny network 203.0.113.0/24'],
    denied,
  ],
  ['deny beats allow the other way round', ['deny country US', 'allow network 203.0.113.7'], denied],
  [
    'a rule of the application before one of all',
    ['deny country US', 'allow country US app_web'],
    allowedBy('destination'),
  ],
  ['a rule of another application', ['deny country US app_other'], nothing],
] as const)('%s', (_, texts, expected) => {
  expect(findListing(rules(...texts), message, now)).toEqual(expected)
  expect(findListing(rules(...texts).toReversed(), message, now)).toEqual(expected)
})

test('a rule ends at its expiry, and another then decides', () => {
  const [first, second] = rules('allow phone +14155550100', 'deny country US')
  const list = [{ ...first, expiresAt: now + 1 }, second] as ListRule[]
  expect(findListing(list, message, now)).toEqual(allowedBy('phone'))
  expect(findListing(list, message, now + 1)).toEqual(denied)
})

test.each([
  ['+549115', '+541155501234'],
  ['+54115', '+5491155501234'],
  ['+551198', '+551187654321'],
] as const)('a rule for the prefix %s holds for the other spelling of a number, %s', (prefix, phone) => {
  expect(findListing(rules(`deny prefix ${prefix}`), { ...message, phone }, now)).toEqual(denied)
  const longer = `allow prefix ${phone.slice(0, 9)}`
  expect(findListing(rules(`deny prefix ${prefix}`, longer), { ...message, phone }, now)).toEqual(
    allowedBy('destination'),
  )
})

test('numbers of no country have the country 001, and a message without address matches no network', () => {
  const satellite = { ...message, phone: '+88213300024', country: null, clientIp: null }
  expect(findListing(rules('deny country 001'), satellite, now)).toEqual(denied)
  expect(findListing(rules('deny network 0.0.0.0/0'), satellite, now)).toEqual(nothing)
})
