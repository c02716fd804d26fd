import type { EntryToAppend } from '../store/events.ts'
import type { Stores } from '../store/store.ts'
import { hourMs } from '../../shared/durations.ts'

/** Maximum time for which an endpoint may fail without a success: 120 hours. */
const failingMaxMs = 120 * hourMs

/** An endpoint whose last attempt failed, and the URL to which that went. */
export type FailingEndpoint = { id: string; url: string; since: number; isGone: boolean }

/**
 * Disables the endpoints that responded 410, or have failed for too long, and logs it. One that is disabled or deleted, that
 * has another URL by now or, for `failing`, has succeeded since stays as it is. Call it in the transaction that records the
 * attempts: it locks the counter of log entries, which comes after the endpoints.
 */
export async function disableFailing(
  tx: Pick<Stores, 'events' | 'webhookEndpoints'>,
  endpoints: readonly FailingEndpoint[],
  now: number,
): Promise<void> {
  const entries: EntryToAppend[] = []
  for (const { id, url, since, isGone } of endpoints) {
    if (!isGone && now - since < failingMaxMs) continue
    const reason = isGone ? 'gone' : 'failing'
    const failingSinceBefore = isGone ? undefined : now - failingMaxMs
    const owner = await tx.webhookEndpoints.disable(id, reason, { url, failingSinceBefore }, now)
    if (!owner) continue
    const detail = `${id} ${reason}`
    const entry = {
      type: 'webhook.disabled',
      ...owner,
      requestId: null,
      phone: null,
      status: null,
      detail,
      at: now,
    } as const
    entries.push({ entry })
  }
  if (entries.length > 0) await tx.events.append(entries)
}
