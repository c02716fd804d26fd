import { notFound, ServiceError } from '../model/errors.ts'
import type { Store } from '../store/store.ts'

/** How long an endpoint may do nothing but fail. */
export const failingMaxMs = 120 * 60 * 60 * 1000

/** `failing`: for 120 hours. `gone`: the receiver answered 410, which asks for just that (Standard Webhooks). */
export type DisabledReason = 'failing' | 'gone'

/**
 * Disables an endpoint and tells so in the log, in one transaction, unless it is disabled already, gone, or, for
 * `failing`, has worked since.
 *
 * @throws UNAVAILABLE
 */
export async function disableEndpoint(
  store: Store,
  id: string,
  reason: DisabledReason,
  now: number,
): Promise<void> {
  const owner = await store.read.webhookEndpoints.findOwner(id)
  if (!owner) return
  const failingSinceBefore = reason === 'failing' ? now - failingMaxMs : undefined
  try {
    await store.write(async (tx) => {
      // Before the endpoint is held: events take the number of their entry first, too, and two that each hold what the
      // other waits for would wait for ever.
      await tx.events.insert({
        type: 'webhook.disabled',
        ...owner,
        requestId: null,
        phone: null,
        status: null,
        detail: `${id} ${reason}`,
        at: now,
      })
      if (!(await tx.webhookEndpoints.disable(id, reason, failingSinceBefore, now))) throw notFound()
    })
  } catch (error) {
    // Undoes the entry.
    if (!(error instanceof ServiceError) || error.code !== 'NOT_FOUND') throw error
  }
}
