import { compareKeys } from './engine/key-order.ts'
import type { NewEvent } from '../domain/store/operation.ts'
import type { Stores } from '../domain/store/store.ts'

/** Locks the endpoints that get deliveries. Later they would wait, and with them every call that needs a counter. */
export function lockEndpoints(tx: Pick<Stores, 'webhookOutbox'>, events: readonly NewEvent[]): void {
  const [first] = events
  const ids = events.flatMap(({ deliveries }) => deliveries.map(({ endpointId }) => endpointId))
  if (first && ids.length > 0)
    tx.webhookOutbox.lockEndpoints([...new Set(ids)].toSorted(compareKeys), first.entry.at)
}

/** Writes the log entries with the deliveries and inbox messages that refer to their numbers. */
export async function writeEvents(
  tx: Pick<Stores, 'events' | 'inbox' | 'webhookOutbox'>,
  events: readonly NewEvent[],
  reserved: number | undefined,
): Promise<void> {
  /** By the index of the event: what its deliveries send. */
  const payloads = events.map(() => ({ id: '', body: '' }))
  const firstSeq = await tx.events.append(
    events.map(({ entry, deliveries, toPayload }, index) => {
      if (deliveries.length === 0) return { entry, toPayload: undefined }
      const writePayload = (id: string) => {
        const body = toPayload(id)
        payloads[index] = { id, body }
        return body
      }
      return { entry, toPayload: writePayload }
    }),
    reserved,
  )
  tx.inbox.insert(
    events.flatMap(({ entry: { requestId, at: sentAt }, inbox }, index) =>
      inbox && requestId !== null ? { ...inbox, seq: firstSeq + index, requestId, sentAt } : [],
    ),
  )
  const deliveries = events.flatMap(
    ({ entry: { type, developerId, appId, at: now }, deliveries: own }, index) =>
      own.map((delivery) => ({
        ...delivery,
        developerId,
        appId,
        eventSeq: firstSeq + index,
        type,
        now,
        payload: payloads[index] ?? { id: '', body: '' },
      })),
  )
  // Endpoints by their ids: the lock order on PostgreSQL, and the one in which SQLite leases.
  await tx.webhookOutbox.insert(deliveries.toSorted((a, b) => compareKeys(a.endpointId, b.endpointId)))
}
