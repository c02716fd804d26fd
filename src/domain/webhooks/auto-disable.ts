import type { Store } from '../store/store.ts'
import { hourMs } from '../../shared/durations.ts'
import type { DisabledReason } from '../model/webhook-endpoint.ts'

/** Maximum time for which an endpoint may fail without a success: 120 hours. */
const failingMaxMs = 120 * hourMs

/** An endpoint whose last attempt failed. */
export type FailingEndpoint = { id: string; since: number; isGone: boolean }

/** Disables the endpoints that responded 410, or have failed for too long. @throws UNAVAILABLE */
export async function disableFailing(
  store: Store<'events' | 'webhookEndpoints'>,
  endpoints: readonly FailingEndpoint[],
  now: number,
): Promise<void> {
  for (const { id, since, isGone } of endpoints) {
    if (isGone || now - since >= failingMaxMs)
      await disableEndpoint(store, id, isGone ? 'gone' : 'failing', now)
  }
}

/**
 * Disables an endpoint and logs it, in one transaction. Does nothing if the endpoint is already disabled or deleted or,
 * for `failing`, has succeeded since.
 *
 * @throws UNAVAILABLE
 */
async function disableEndpoint(
  store: Store<'events' | 'webhookEndpoints'>,
  id: string,
  reason: DisabledReason,
  now: number,
): Promise<void> {
  const owner = await store.read.webhookEndpoints.findOwner(id)
  if (!owner) return
  const failingSinceBefore = reason === 'failing' ? now - failingMaxMs : undefined
  const entry = { ...owner, requestId: null, phone: null, status: null, detail: `${id} ${reason}`, at: now }
  await store.write(async (tx) => {
    // Lock order: endpoint before the counter of events, as operations do, to avoid deadlock.
    if (await tx.webhookEndpoints.disable(id, reason, failingSinceBefore, now))
      await tx.events.append([{ entry: { type: 'webhook.disabled', ...entry } }])
  })
}
