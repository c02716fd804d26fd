import { expect, test } from 'bun:test'
import type { DeliveryTry } from '../../src/domain/model/delivery.ts'
import type { Message } from '../../src/domain/model/message.ts'
import { formatTry } from '../../src/domain/model/try-lines.ts'
import { applyCharge, chargeEarlierTry } from '../../src/domain/otp/charges.ts'
import { createPendingRequest } from '../helpers/otp-request.ts'

const createdAt = Date.parse('2026-11-20T12:00:00.000Z')
const cost = { estimatedPrice: 600_000, chargedPrice: null }
const tried: DeliveryTry = {
  at: createdAt,
  channel: 'sms',
  provider: 'main',
  messageId: 'SM1',
  outcome: 'accepted',
  error: null,
  reply: null,
  latencyMs: 20,
  cost,
}

const message: Message = {
  requestId: 'otp_1',
  messageNumber: 0,
  channels: ['sms'],
  status: 'delivered',
  provider: 'main',
  messageId: 'SM1',
  failure: null,
  excluded: [],
  attempts: 1,
  nextAttemptAt: null,
  leaseOwner: null,
  leaseUntil: null,
  reportDueAt: null,
  ...cost,
  createdAt,
  updatedAt: createdAt,
}

test('a price that a later message of the request has asked for counts once', () => {
  const request = createPendingRequest(createdAt, { provider: 'main' })
  const sent = { ...request, history: formatTry(request, tried) }
  const receipt = { messageId: 'SM1', charge: 243_000 }
  const [booked, changed] = chargeEarlierTry(sent, 'main', receipt) ?? []
  expect(booked).toMatchObject({ counts: { cost: -357_000, estimatedCost: -600_000 } })
  if (changed?.kind !== 'request') throw new Error('the timeline has no price')

  const applied = applyCharge({ request: changed.request, message }, 'main', receipt)
  expect(applied.changes[0]).toMatchObject({ counts: { cost: 0, estimatedCost: -0 } })
  expect(applied.message.chargedPrice).toBe(243_000)
})

test.each([
  [['voice'], 'voice'],
  [['voice', 'whatsapp'], 'sms'],
  [[], 'sms'],
] as const)('a price of a message by %j that no timeline has counts for %s', (channels, channel) => {
  const request = createPendingRequest(createdAt, { channel: 'sms', provider: 'main' })
  const receipt = { messageId: 'SM1', charge: 243_000 }
  const applied = applyCharge({ request, message: { ...message, channels: [...channels] } }, 'main', receipt)
  expect(applied.changes[0]).toMatchObject({ key: { channel, provider: 'main' } })
})
