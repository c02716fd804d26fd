import { breakdownChange, chargeCounts, relayedCounts } from '../log/changes.ts'
import { relayEventChange } from '../log/relay-events.ts'
import type { Receipt } from '../model/delivery.ts'
import type { NewId } from '../model/ids.ts'
import type { RelayedMessage } from '../model/relayed-message.ts'
import type { Change } from '../store/operation.ts'
import type { Store } from '../store/store.ts'

/**
 * Creates the function that applies a receipt to the relayed message that it is about, with its log entry, in one
 * transaction. A repeated receipt does nothing, and no status goes backwards. An undelivered message is not sent again:
 * its code is gone.
 *
 * @returns a function that returns false if no relayed message is meant
 */
export function createRelayReceipts(needs: { store: Store<'relayedMessages'>; newId: NewId }) {
  const { store, newId } = needs

  return async (provider: string, receipt: Receipt): Promise<boolean> => {
    const id = await store.read.relayedMessages.findForReceipt(provider, receipt)
    if (id === undefined) return false
    await store.decide({
      preload: {
        first: () => ({ relayed: id }),
        next: (rows) => ({ subscribers: rows.relayed(id)?.appId }),
      },
      decide(rows) {
        const message = rows.relayed(id)
        const { status } = receipt
        if (!message) return { result: undefined, changes: [] }
        const { priced, changes } = applyCharge(message, receipt)
        const isNews = message.status === 'unknown' || (message.status === 'sent' && status !== 'sent')
        if (!isNews) return { result: undefined, changes }
        const received = { ...priced, status, messageId: message.messageId ?? receipt.messageId }
        changes.push({ kind: 'relayed', message: received, isNew: false })
        if (status !== 'sent') {
          const endpoints = rows.subscribers(message.appId)
          const detail = receipt.failure?.class ?? null
          const type = `message.${status}` as const
          changes.push(relayEventChange(newId, type, message, endpoints, rows.now(), detail))
        }
        return { result: undefined, changes }
      },
    })
    return true
  }
}

/** Replaces the estimated price by what the provider charges, in the counts of the day on which the message was sent. */
function applyCharge(
  message: RelayedMessage,
  { charge }: Pick<Receipt, 'charge'>,
): { priced: RelayedMessage; changes: Change[] } {
  if (charge === undefined || charge === message.chargedPrice) return { priced: message, changes: [] }
  const priced = { ...message, chargedPrice: charge }
  const counts = relayedCounts(chargeCounts(message, charge))
  return {
    priced,
    changes: [
      breakdownChange(message, counts, message.createdAt),
      { kind: 'relayed', message: priced, isNew: false },
    ],
  }
}
