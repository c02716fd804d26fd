import type { IdempotencyScope } from '../model/idempotency.ts'
import type { OwnedPhone } from '../model/phone-record.ts'

/** A resumable scan of a table, from its oldest rows on. The names are stored. */
export type ScanName = 'requests' | 'events' | 'answers' | 'phones' | 'guard'

/** Row of an OTP request, keyed by id. */
type RequestRow = OwnedPhone & { id: string }

type EventRow = {
  seq: number
  developerId: string
  phone: string | null
  at: number
}

export type IdempotencyKey = Pick<IdempotencyScope, 'caller' | 'route' | 'key'>
export type IdempotencyRow = IdempotencyKey & { answer: string | null }

/** Queries for pseudonymization and erasure. Lists are in key order and start after `after`. */
export type RetentionStore = {
  /**
   * Makes a partition that the largest tables need soon. Does nothing on SQLite.
   *
   * @returns true if it made one, so that there may be more to do
   */
  preparePartition(now: number): Promise<boolean>
  /** Returns how far a scan has come; undefined before its first step. */
  checkpoint(scan: ScanName): Promise<string | undefined>
  setCheckpoint(scan: ScanName, checkpoint: string): Promise<void>
  /** @param before an id; lists lower ids only */
  listRequests(after: string, before: string | undefined, limit: number): Promise<RequestRow[]>
  listEvents(afterSeq: number, limit: number): Promise<EventRow[]>
  /** Lists deliveries with the sequence numbers of their events. @param endpointId undefined: of all endpoints */
  listDeliveries(
    after: string,
    limit: number,
    endpointId?: string,
  ): Promise<Array<{ id: string; eventSeq: number }>>
  /**
   * Replaces the phone number, and clears what may identify the same person: IP address, contexts, metadata, text, links,
   * ids of messages. An erased number stays erased.
   */
  replaceInRequest(id: string, phone: string): Promise<void>
  /**
   * Replaces the phone number of an entry, unless it is erased.
   *
   * @param redact rewrites the body of the entry's webhook, which contains the phone number too
   */
  replaceInEvent(seq: number, phone: string, redact: (payload: string) => string): Promise<void>
  /** Clears the stored response bodies of deliveries in an id range, both ends included. */
  clearResponses(from: string, to: string): Promise<void>
  /** Finds the last delivery id of the next batch of responses; undefined if there are none left. */
  findResponseBatchEnd(after: string, before: string, limit: number): Promise<string | undefined>
  /** Deletes the messages of requests: provider deliveries and inbox messages. */
  deleteMessages(requestIds: readonly string[]): Promise<void>
  /**
   * Lists stored idempotency results; those that cannot be decrypted have none.
   *
   * @param after undefined: from the first
   * @param caller undefined: of all callers
   */
  listIdempotencyResults(
    after: IdempotencyKey | undefined,
    limit: number,
    caller?: string,
  ): Promise<IdempotencyRow[]>
  deleteIdempotencyResult(key: IdempotencyKey): Promise<void>
}
