import type { Developer } from '../model/developer.ts'
import { invalidField, notFound } from '../model/errors.ts'
import { isId } from '../model/ids.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import type { Clock } from '../model/clock.ts'
import type { CallLimits } from '../limits/call-limits.ts'
import type { Store } from '../store/store.ts'
import type { RetryPosition } from '../store/webhook-deliveries.ts'
import type {
  WebhookAttempt,
  WebhookDeliveryFilter,
  SendWebhook,
  WebhookDelivery,
} from '../model/webhook-delivery.ts'

export type DeliveryWithAttempts = {
  delivery: WebhookDelivery
  attempts: WebhookAttempt[]
  /** Body of every request; null if the event was deleted, or cannot be decrypted. */
  body: string | null
}

/** Deliveries per transaction. */
const requeueBatchSize = 500

export type WebhookDeliveryService = ReturnType<typeof createWebhookDeliveryService>

/** Creates the service that lists, redelivers and recovers webhook deliveries. They are kept as long as log entries. */
export function createWebhookDeliveryService(needs: {
  store: Store<'webhookDeliveries' | 'webhookEndpoints'>
  clock: Clock
  send: SendWebhook
  callLimits: Pick<CallLimits, 'chargeRedelivery'>
}) {
  const { store, clock, send, callLimits } = needs
  const { webhookDeliveries, webhookEndpoints } = store.read

  const requireEndpoint = async (developer: Developer, id: string) => {
    if (!isId('whk', id) || !(await webhookEndpoints.find(developer.id, id)))
      throw notFound('webhookEndpoint')
  }

  async function get(developer: Developer, endpointId: string, id: string): Promise<DeliveryWithAttempts> {
    await requireEndpoint(developer, endpointId)
    const delivery = isId('dlv', id) ? await webhookDeliveries.find(endpointId, id) : undefined
    if (!delivery) throw notFound('webhookDelivery')
    const message = await webhookDeliveries.load(endpointId, id)
    return { delivery, attempts: await webhookDeliveries.attempts(id), body: message?.body ?? null }
  }

  return {
    /** Lists deliveries, newest first. @throws NOT_FOUND the endpoint; INVALID_ARGUMENT (CURSOR_INVALID) */
    async list(
      developer: Developer,
      endpointId: string,
      filter: WebhookDeliveryFilter,
      page: PageRequest,
    ): Promise<Page<WebhookDelivery>> {
      await requireEndpoint(developer, endpointId)
      const before = readIdCursor(page, 'dlv')
      const query = { ...filter, limit: page.limit + 1, before }
      const rows = await webhookDeliveries.list(endpointId, query)
      return toPage(rows, page.limit, ({ id }) => id)
    },

    /** Returns a delivery with its attempts, oldest first. @throws NOT_FOUND */
    get,

    /**
     * Sends the event again immediately, in any state of the delivery and even to a disabled endpoint, with the same
     * `webhook-id` and signed with the current secret. A failure changes neither the delivery's schedule nor the
     * state of the endpoint; a success completes the delivery.
     *
     * @returns the updated delivery, with this attempt as the last
     * @throws NOT_FOUND; RATE_LIMITED (WEBHOOK_REDELIVERIES)
     */
    async redeliver(developer: Developer, endpointId: string, id: string): Promise<DeliveryWithAttempts> {
      await get(developer, endpointId, id)
      callLimits.chargeRedelivery(developer)
      const message = await webhookDeliveries.load(endpointId, id)
      if (!message) throw notFound('webhookDelivery')
      const at = clock.now()
      const { retryAfterMs: _, ...result } = await send(message)
      const now = clock.now()
      const isRecorded = await store.write((tx) =>
        tx.webhookDeliveries.recordManualAttempt(endpointId, id, { at, ...result }, now),
      )
      if (!isRecorded) throw notFound('webhookDelivery')
      return get(developer, endpointId, id)
    },

    /**
     * Requeues every failed or skipped delivery of an event between `since` and `until`, and those that wait for a retry,
     * to be sent at once, with a new retry schedule. A disabled endpoint receives them once it is enabled. Works in
     * batches, each a transaction: a call that fails midway has requeued some, and can be retried.
     *
     * @param range.until defaults to now
     * @returns the number of requeued deliveries
     * @throws NOT_FOUND; INVALID_ARGUMENT `until` is before `since`; RATE_LIMITED (WEBHOOK_REDELIVERIES)
     */
    async recover(
      developer: Developer,
      endpointId: string,
      range: { since: number; until?: number | undefined },
    ): Promise<number> {
      await requireEndpoint(developer, endpointId)
      const now = clock.now()
      const { since, until = Math.max(now, since) } = range
      if (until < since) throw invalidRange()
      callLimits.chargeRedelivery(developer)
      const limits = { since, until, limit: requeueBatchSize }
      let recovered = 0
      // First, so that none is counted twice.
      let last: RetryPosition | undefined
      do {
        const bounds = { ...limits, after: last }
        const batch = await store.write((tx) => tx.webhookDeliveries.hurryRetries(endpointId, bounds, now))
        recovered += batch.count
        last = batch.last
      } while (last !== undefined)
      let after: string | undefined
      do {
        const bounds = { ...limits, after }
        const ids = await store.write((tx) => tx.webhookDeliveries.requeueEnded(endpointId, bounds, now))
        recovered += ids.length
        after = ids.at(-1)
      } while (after !== undefined)
      return recovered
    },
  }
}

const invalidRange = () => invalidField('body', 'until', 'Expected a time that is not before since.')
