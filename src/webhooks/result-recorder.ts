import { disableFailing, type FailingEndpoint } from '../domain/webhooks/auto-disable.ts'
import type { Store } from '../domain/store/store.ts'
import type { ClaimedDelivery } from '../domain/store/webhook-outbox.ts'
import type { WebhookAttempt } from '../domain/model/webhook-delivery.ts'

/** A finished send, to be recorded. Without `sent` nothing was sent, and the claim is only released. */
export type CompletedSend = {
  claim: ClaimedDelivery
  sent?: { attempt: WebhookAttempt; url: string }
  retryAfterMs: number | null
}

/**
 * Results that a transaction records. On PostgreSQL it locks their endpoints for three round trips each, and groups of calls
 * that send events to one of them wait for the lock.
 */
const batchMax = 10

/** Creates the recorder of finished sends: they wait in memory until they are in the database. */
export function createResultRecorder({
  store,
  owner,
  onError,
}: {
  store: Store<'leases' | 'webhookEndpoints' | 'webhookOutbox' | 'events'>
  owner: string
  onError(error: unknown): void
}) {
  /** Finished sends that are not yet recorded in the database. */
  const unrecorded = new Set<CompletedSend>()
  /** Whether a batch could not be recorded: the results are then recorded one by one, so that none blocks the others. */
  let recordsOneByOne = false

  /**
   * Records the finished sends, in transactions that begin together.
   *
   * @returns whether any was recorded; after a database error the recording is retried, and once the lease expires the
   *   delivery is too
   */
  async function record(): Promise<boolean> {
    // Sorted, so that concurrent nodes lock endpoints in the same order (no deadlock).
    if (unrecorded.size === 0) return false
    const completed = [...unrecorded].toSorted(
      ({ claim: { endpointId: a } }, { claim: { endpointId: b } }) => (a < b ? -1 : a > b ? 1 : 0),
    )
    const batches = chunks(completed, recordsOneByOne ? 1 : batchMax)
    // Many wait for their turn, as the writes of callers do.
    const isUrgent = batches.length === 1
    recordsOneByOne = false
    return (await Promise.all(batches.map((batch) => recordBatch(batch, isUrgent)))).includes(true)
  }

  async function recordBatch(completed: CompletedSend[], isUrgent: boolean): Promise<boolean> {
    try {
      await store.write(
        async (tx) => {
          const { leases, webhookOutbox } = tx
          const now = await leases.now()
          const failing: FailingEndpoint[] = []
          for (const { claim, sent, retryAfterMs } of completed) {
            if (!sent) await webhookOutbox.release({ ...claim, owner })
            else {
              const { attempt, url } = sent
              const retryAt = retryAfterMs === null ? null : now + retryAfterMs
              const since = await webhookOutbox.finish({ ...claim, owner, attempt, retryAt, now })
              const isGone = attempt.statusCode === 410
              if (since !== null) failing.push({ id: claim.endpointId, url, since, isGone })
            }
          }
          if (failing.length > 0) await disableFailing(tx, failing, now)
        },
        { isUrgent },
      )
    } catch (error) {
      onError(error)
      recordsOneByOne = true
      return false
    }
    for (const one of completed) unrecorded.delete(one)
    return true
  }

  return {
    add: (completed: CompletedSend) => void unrecorded.add(completed),
    /** Whether sends wait to be recorded. */
    hasUnrecorded: () => unrecorded.size > 0,
    record,
  }
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  const starts = Array.from({ length: Math.ceil(items.length / size) }, (_, index) => index * size)
  return starts.map((start) => items.slice(start, start + size))
}
