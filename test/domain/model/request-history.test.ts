import { expect, test } from 'bun:test'
import {
  findTry,
  formatTry,
  listTries,
  replaceTry,
  withoutMessageIds,
} from '../../../src/domain/model/try-lines.ts'
import { formatEntry, parseHistory, withRefusals } from '../../../src/domain/model/request-history.ts'
import type { DeliveryTry } from '../../../src/domain/model/delivery.ts'

const tried: DeliveryTry = {
  at: 1_000,
  channel: 'sms',
  provider: 'main',
  messageId: null,
  outcome: 'refused',
  error: 'unknown',
  reply: 'ERR 17, unknown sender:\n"ACME" – 100 % ~?',
  latencyMs: 20,
}
const format = (one: DeliveryTry) => formatTry({ createdAt: 900 }, one)
const parse = (history: string) => parseHistory({ history, createdAt: 900 })

test('lists the tries of a request alone, in the order in which they began', () => {
  const later = { ...tried, at: 2_000, messageId: 'SM2' }
  const sent = formatEntry(
    { createdAt: 900 },
    { type: 'otp.sent', status: 'pending', detail: null, at: 900 },
    1,
  )
  const history = `${sent}${format(later)}${format(tried)}tz,broken\n`
  expect(listTries({ history, createdAt: 900 })).toEqual([tried, later])
})

test('keeps what a provider said, until the phone number is erased', () => {
  const accepted = { ...tried, messageId: 'SM,1', error: null, reply: null }
  const history = format(tried) + format(accepted)
  const type = 'delivery.attempted'
  expect(parse(history)).toEqual([
    { line: 0, type, ...tried },
    { line: 1, type, ...accepted },
  ])
  expect(parse(withoutMessageIds(history))).toMatchObject([
    { provider: 'main', messageId: null, reply: null },
    { provider: 'main', messageId: null, reply: null },
  ])
})

test('keeps that the attempt before was interrupted, also once the phone number is erased', () => {
  const repeated = { ...tried, messageId: 'SM1', reply: null, isInterrupted: true }
  const history = format(repeated) + format(tried)
  const type = 'delivery.attempted'
  expect(parse(history)).toEqual([
    { line: 0, type, ...repeated },
    { line: 1, type, ...tried },
  ])
  expect(parse(withoutMessageIds(history))[0]).toMatchObject({ messageId: null, isInterrupted: true })
})

test('keeps the decision of a strategy with the try that it led to', () => {
  const considered = [
    { provider: 'cheap', price: 5_000, conversion: 0.601, samples: 41 },
    { provider: 'good', price: null, conversion: 0.85, samples: 500 },
  ]
  const choice = { channel: 'sms', strategy: 'cost', reason: 'best', considered } as const
  for (const reply of [null, 'unknown sender']) {
    const [parsed] = parse(format({ ...tried, reply, choice }))
    expect(parsed).toEqual({ line: 0, type: 'delivery.attempted', ...tried, reply, choice })
  }
})

test('finds the try of a message by its id, and replaces its price, which stays once the phone is erased', () => {
  const estimated = { estimatedPrice: 7_900, chargedPrice: null }
  const accepted = { ...tried, outcome: 'accepted', error: null, reply: null, cost: estimated } as const
  const lost = {
    ...accepted,
    outcome: 'uncertain',
    cost: { estimatedPrice: null, chargedPrice: null },
  } as const
  const history =
    format({ ...accepted, messageId: 'SM1' }) +
    format(tried) +
    format(lost) +
    format({ ...accepted, messageId: 'SM2' })
  const find = (text: string, message: { provider: string; messageId: string | null }) =>
    findTry({ history: text, createdAt: 900 }, message)
  const charge = (messageId: string | null, price: number) => (text: string) => {
    const found = find(text, { provider: 'main', messageId })
    if (!found) throw new Error(`no ${messageId}`)
    const cost = { estimatedPrice: null, ...found.tried.cost, chargedPrice: price }
    return replaceTry({ history: text, createdAt: 900 }, { ...found, tried: { ...found.tried, cost } })
  }
  const costs = (text: string) => parse(text).map((entry) => ('cost' in entry ? entry.cost : null))
  expect(costs(history)).toEqual([estimated, null, lost.cost, estimated])
  const charged = charge(null, 9_000)(charge('SM1', 8_100)(history))
  const known = [
    { ...estimated, chargedPrice: 8_100 },
    null,
    { ...lost.cost, chargedPrice: 9_000 },
    estimated,
  ]
  expect(costs(charged)).toEqual(known)
  expect(costs(withoutMessageIds(charged))).toEqual(known)
  expect(withoutMessageIds(charged)).not.toMatch(/SM|ERR/)
  expect(find(history, { provider: 'spare', messageId: 'SM1' })).toBeUndefined()
  expect(find(history, { provider: 'main', messageId: 'SM3' })).toBeUndefined()
})

test('keeps the sends refused since the last message in one line', () => {
  const sends = { reason: 'APP_RATE', count: 1, since: 1_000, at: 1_000, loggedAt: 1_000, nextAt: 61_000 }
  const later = { ...sends, count: 2, at: 2_000, nextAt: 62_000 }
  const entry = { type: 'otp.sent', status: 'pending', detail: null, at: 900 } as const
  const sent = formatEntry({ createdAt: 900 }, entry, 1)
  const withSends = (history: string, one: typeof sends) => withRefusals({ history, createdAt: 900 }, one)
  const once = withSends(sent, sends)
  const twice = withSends(once + format(tried), later)
  const type = 'otp.refused'
  expect(parse(twice)).toMatchObject([{ line: 0 }, { line: 2, ...tried }, { line: 1, type, ...later }])
  expect(parse(withSends(twice + sent, sends)).filter((one) => one.type === type)).toMatchObject([
    sends,
    later,
  ])
})
