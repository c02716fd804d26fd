import { blockedChanges, breakdownChange, costCounts, relayedCounts } from '../log/changes.ts'
import type { Dispatched, DispatchResult } from '../model/delivery.ts'
import { noCost } from '../model/price.ts'
import type { NewId } from '../model/ids.ts'
import { erasedPhone } from '../model/pseudonyms.ts'
import { isRejected, type Rejected } from '../model/rejected.ts'
import { relayEventChange, type RelayedFacts } from '../log/relay-events.ts'
import type { Channel } from '../model/request.ts'
import type { Change, EventSubscriber } from '../store/operation.ts'
import type { OtpNeeds } from './needs.ts'
import { namePhoneRows, readPhone } from './phones.ts'
import { saveRelay, type Relayed, type RelayScopes } from './relay-once.ts'
import { deliveryFailed } from './settle.ts'

export type SettleNeeds = Pick<OtpNeeds, 'store' | 'newId' | 'keys'> & {
  /** Applies a receipt that arrived before its message was stored. */
  applyEarlyReceipt(id: string, provider: string, messageId: string | null): Promise<void>
}

/**
 * Stores the outcome of a dispatch: the message, its log entry, and the result for equal calls. If the phone was erased
 * meanwhile, the message is not kept, and the others do not name the phone.
 */
export async function settleRelay(
  { store, newId, keys, applyEarlyReceipt }: SettleNeeds,
  scopes: RelayScopes,
  message: RelayedFacts,
  channels: readonly Channel[],
  dispatched: Dispatched,
): Promise<Relayed | Rejected> {
  const { result, stored } = await store.decide({
    preload: {
      first: (rows) => ({ subscribers: message.appId, ...namePhoneRows(rows, keys, message) }),
    },
    decide(rows) {
      // The record was saved with this message before the dispatch.
      const isErased = readPhone(rows, keys, message).record.lastSentAt === 0
      const known = isErased ? { ...message, phone: erasedPhone, clientIp: null } : message
      const { changes: toChanges, ...outcome } = decideOutcome(newId, scopes, known, channels, dispatched)
      const changes = toChanges(rows.subscribers(message.appId), rows.now())
      if (!isErased) return { result: outcome, changes }
      return {
        result: { ...outcome, stored: undefined },
        changes: changes.filter(({ kind }) => kind !== 'relayed'),
      }
    },
  })
  if (stored) await applyEarlyReceipt(stored.id, stored.provider, stored.messageId)
  return isRejected(result) ? result : { ...result, phone: message.phone }
}

/** Decides the outcome of a dispatch. `stored` is the message, if a provider has it or may have it. */
export function decideOutcome(
  newId: NewId,
  scopes: RelayScopes,
  message: RelayedFacts,
  channels: readonly Channel[],
  dispatched: DispatchResult & Partial<Dispatched>,
) {
  const { id, phone } = message
  const isOut = dispatched.kind === 'accepted' || dispatched.kind === 'uncertain'
  const messageId = dispatched.kind === 'accepted' ? dispatched.messageId : null
  const failure = dispatched.kind === 'accepted' ? null : (dispatched.failure?.class ?? null)
  const candidate = isOut ? dispatched.candidate : undefined
  const status = dispatched.kind === 'accepted' ? ('sent' as const) : ('unknown' as const)
  const sentBy = { ...message, ...(candidate && { channel: candidate.channel }) }
  const result: Relayed | Rejected = candidate
    ? { id, phone, channel: candidate.channel, status }
    : deliveryFailed({ id }, failure, { channels, country: message.country })
  const { traceparent: _, ...facts } = sentBy
  const cost = isOut ? dispatched.cost : undefined
  const stored = candidate && {
    ...facts,
    provider: candidate.provider,
    messageId,
    status,
    outcome: null,
    ...(cost ?? noCost),
  }
  const type = candidate ? 'message.sent' : 'message.undelivered'
  const changes = (subscribers: readonly EventSubscriber[], now: number): Change[] => [
    ...(stored
      ? [
          { kind: 'relayed' as const, message: stored, isNew: true },
          breakdownChange(
            stored,
            { relayed: 1, ...(cost && relayedCounts(costCounts(cost))) },
            stored.createdAt,
          ),
        ]
      : []),
    ...blockedChanges(sentBy, dispatched.tries ?? [], now),
    relayEventChange(newId, type, sentBy, subscribers, now, failure),
    ...saveRelay(scopes, result, now),
  ]
  return { result, stored, changes }
}
