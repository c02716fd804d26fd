import type { IdempotencyKey, IdempotencyRow } from '../store/retention.ts'
import type { Stores } from '../store/store.ts'
import { scanPages } from './scan-pages.ts'

type OwnedRow = { developerId: string; phone: string | null }

/** Records that may contain a phone number, in pages. */
type ErasableRecords = {
  developerIds(): Promise<string[]>
  requests(): AsyncIterable<Array<OwnedRow & { id: string; appId?: string }>>
  events(): AsyncIterable<Array<OwnedRow & { seq: number }>>
  /** Messages and sessions of a day, of all developers: those of others without their phones. */
  relayedPhones(): AsyncIterable<Array<OwnedRow & { id: string }>>
  sessionPhones(): AsyncIterable<Array<OwnedRow & { id: string }>>
  /** @param appIds applications that sent to the phone */
  deliveries(appIds: Iterable<string>): AsyncIterable<Array<{ id: string; eventSeq: number }>>
  idempotencyResults(appIds: Iterable<string>): AsyncIterable<IdempotencyRow[]>
}

type Read = Pick<
  Stores,
  | 'developers'
  | 'events'
  | 'idempotency'
  | 'otpRequests'
  | 'otpSessions'
  | 'relayedMessages'
  | 'retention'
  | 'webhookEndpoints'
>

const pageRows = 500
/** A page of a developer's records is read while a caller waits for another answer. */
const ownPageRows = 100

const byId = ({ id }: { id: string }) => id

/** Lists the records of all developers, table by table. */
export function recordsOfAll(read: Read): ErasableRecords {
  const { retention } = read
  return {
    developerIds: async () => (await read.developers.list()).map(byId),
    requests: () =>
      scanPages((after, limit) => retention.listRequests(after, undefined, limit), byId, '', pageRows),
    events: () => scanPages(retention.listEvents, ({ seq }) => seq, 0, pageRows),
    ...phonesOfADay(read, undefined, pageRows),
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

/** Lists the records of one developer. The cost does not depend on how many others have, but for those that live a day. */
export function recordsOf(read: Read, developerId: string, now: number): ErasableRecords {
  const { retention } = read
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
    ...phonesOfADay(read, developerId, ownPageRows),
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

/** Lists what lives a day and has no index by developer. @param owner see `RelayedMessageStore.listPhones` */
function phonesOfADay(
  { relayedMessages, otpSessions }: Pick<Read, 'relayedMessages' | 'otpSessions'>,
  owner: string | undefined,
  pageRows: number,
): Pick<ErasableRecords, 'relayedPhones' | 'sessionPhones'> {
  type List = (after: string, limit: number, owner?: string) => Promise<Array<OwnedRow & { id: string }>>
  const scan = (list: List) => scanPages((after, limit) => list(after, limit, owner), byId, '', pageRows)
  return {
    relayedPhones: () => scan(relayedMessages.listPhones),
    sessionPhones: () => scan(otpSessions.listPhones),
  }
}
