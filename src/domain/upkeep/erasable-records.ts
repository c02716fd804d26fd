import type { IdempotencyKey, IdempotencyRow } from '../store/retention.ts'
import type { Stores } from '../store/store.ts'
import { scanPages } from './scan-pages.ts'

type OwnedRow = { developerId: string; phone: string | null }

/** Records that may contain a phone number, in pages. */
type ErasableRecords = {
  developerIds(): Promise<string[]>
  requests(): AsyncIterable<Array<OwnedRow & { id: string; appId?: string }>>
  events(): AsyncIterable<Array<OwnedRow & { seq: number }>>
  /** @param appIds applications that sent to the phone */
  deliveries(appIds: Iterable<string>): AsyncIterable<Array<{ id: string; eventSeq: number }>>
  idempotencyResults(appIds: Iterable<string>): AsyncIterable<IdempotencyRow[]>
}

type Read = Pick<
  Stores,
  'developers' | 'events' | 'idempotency' | 'otpRequests' | 'retention' | 'webhookEndpoints'
>

const pageRows = 500
/** A page of a developer's records is read while a caller waits for another answer. */
const ownPageRows = 100

/** Lists the records of all developers, table by table. */
export function recordsOfAll(read: Read): ErasableRecords {
  const { retention } = read
  const byId = ({ id }: { id: string }) => id
  return {
    developerIds: async () => (await read.developers.list()).map(byId),
    requests: () =>
      scanPages((after, limit) => retention.listRequests(after, undefined, limit), byId, '', pageRows),
    events: () => scanPages(retention.listEvents, ({ seq }) => seq, 0, pageRows),
    deliveries: () => scanPages((after, limit) => retention.listDeliveries(after, limit), byId, '', pageRows),
    idempotencyResults: () =>
      scanPages<IdempotencyRow, IdempotencyKey | undefined>(
        (after, limit) => retention.listIdempotencyResults(after, limit),
        (row) => row,
        undefined,
        pageRows,
      ),
  }
}

/** Lists the records of one developer. The cost does not depend on how many others have. */
export function recordsOf(read: Read, developerId: string, now: number): ErasableRecords {
  const { retention } = read
  const byId = ({ id }: { id: string }) => id
  return {
    developerIds: () => Promise.resolve([developerId]),
    requests: () =>
      scanPages<{ id: string; appId: string } & OwnedRow, string | undefined>(
        (before, limit) => read.otpRequests.list({ developerId, now, limit, before }),
        byId,
        undefined,
        ownPageRows,
      ),
    events: () =>
      scanPages(
        (afterSeq, limit) => read.events.list(developerId, { limit, afterSeq }),
        ({ seq }) => seq,
        0,
        ownPageRows,
      ),
    async *deliveries(appIds) {
      for (const appId of appIds)
        for (const endpoint of await read.webhookEndpoints.subscribers(appId))
          yield* scanPages(
            (after, limit) => retention.listDeliveries(after, limit, endpoint.id),
            byId,
            '',
            ownPageRows,
          )
    },
    async *idempotencyResults(appIds) {
      for (const appId of appIds)
        yield* scanPages<IdempotencyRow, IdempotencyKey | undefined>(
          (after, limit) => retention.listIdempotencyResults(after, limit, appId),
          (row) => row,
          undefined,
          ownPageRows,
        )
    },
  }
}
