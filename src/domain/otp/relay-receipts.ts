import { relayEventChange } from '../log/relay-events.ts'
import type { Clock } from '../model/clock.ts'
import type { Receipt } from '../model/delivery.ts'
import type { NewId } from '../model/ids.ts'
import type { Change } from '../store/operation.ts'
import type { Store } from '../store/store.ts'

/**
 * Creates the function that applies a receipt to the relayed message that it is about, with its log entry, in one
 * transaction. A repeated receipt does nothing, and no status goes backwards. An undelivered message is not sent again:
 * its code is gone.
 *
 * @returns a function that returns false if no relayed message is meant
 */
export function createRelayReceipts(needs: { store: Store<'relayedMessages'>; clock: Clock; newId: NewId }) {
  const { store, clock, newId } = needs

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
        const isNews = message?.status === 'unknown' || (message?.status === 'sent' && status !== 'sent')
        if (!message || !isNews) return { result: undefined, changes: [] }
        const received = { ...message, status, messageId: message.messageId ?? receipt.messageId }
        const changes: Change[] = [{ kind: 'relayed', message: received, isNew: false }]
        if (status !== 'sent') {
          const endpoints = rows.subscribers(message.appId)
          const detail = receipt.failure?.class ?? null
          const type = `message.${status}` as const
          changes.push(relayEventChange(newId, type, message, endpoints, rows.now(clock), detail))
        }
        return { result: undefined, changes }
      },
    })
    return true
  }
}
