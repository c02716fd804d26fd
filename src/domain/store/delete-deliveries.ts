import type { Store } from './store.ts'

const batchSize = 100

/**
 * Deletes the deliveries of an endpoint that is about to be deleted. In batches, each a transaction: together with the
 * endpoint, a million of them would hold up every other call, and take longer than PostgreSQL lets a statement run.
 */
export async function deleteDeliveries(store: Store<'webhookDeliveries'>, endpointId: string): Promise<void> {
  let after: string | undefined
  do {
    const range = { after, limit: batchSize }
    after = await store.write((tx) => tx.webhookDeliveries.deleteFirst(endpointId, range))
  } while (after !== undefined)
}
