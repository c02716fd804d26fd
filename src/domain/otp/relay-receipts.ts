import type { Receipt } from '../model/delivery.ts'
import type { NewId } from '../model/ids.ts'
import type { Store } from '../store/store.ts'
import { relayEventChange } from '../log/relay-events.ts'

/**
 * Creates the function that applies a receipt to the relayed message that it is about, with its log entry, in one
 * transaction. A repeated receipt does nothing, and no status goes backwards. An undelivered message is not sent again:
 * its code is gone.
 *
 * @returns a function that returns false if no relayed message is meant
 */
export function createRelayReceipts(needs: {
  store: Store<'changes' | 'leases' | 'relayedMessages' | 'webhookEndpoints'>
  newId: NewId
}) {
  const { store, newId } = needs

  return async (provider: string, receipt: Receipt): Promise<boolean> => {
    const id = await store.read.relayedMessages.findForReceipt(provider, receipt)
    if (id === undefined) return false
    await store.write(async (tx) => {
      const message = await tx.relayedMessages.lock(id)
      if (!message) return
      const { status } = receipt
      const isNews = message.status === 'unknown' || (message.status === 'sent' && status !== 'sent')
      if (!isNews) return
      await tx.relayedMessages.setStatus({ id, status, messageId: message.messageId ?? receipt.messageId })
      if (status === 'sent') return
      const subscribers = await tx.webhookEndpoints.subscribers(message.appId)
      const now = await tx.leases.now()
      const detail = receipt.failure?.class ?? null
      await tx.changes.apply([
        relayEventChange(newId, `message.${status}`, message, subscribers, now, detail),
      ])
    })
    return true
  }
}
