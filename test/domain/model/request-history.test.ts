import { expect, test } from 'bun:test'
import { formatTry, parseHistory, withoutMessageIds } from '../../../src/domain/model/request-history.ts'
import type { DeliveryTry } from '../../../src/domain/model/delivery.ts'

const attempt: DeliveryTry = {
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

test('keeps what a provider said, until the phone number is erased', () => {
  const accepted = { ...attempt, messageId: 'SM,1', error: null, reply: null }
  const history = format(attempt) + format(accepted)
  const type = 'delivery.attempted'
  expect(parse(history)).toEqual([
    { line: 0, type, ...attempt },
    { line: 1, type, ...accepted },
  ])
  expect(parse(withoutMessageIds(history))).toMatchObject([
    { provider: 'main', messageId: null, reply: null },
    { provider: 'main', messageId: null, reply: null },
  ])
})
