/** Which table is walked, from its oldest rows on. */
export type ScanName = 'requests' | 'events' | 'answers'

/** A row of an OTP request; the key is its id. */
export type RequestRow = { id: string; developerId: string; phone: string }

export type EventRow = {
  seq: number
  developerId: string
  phone: string | null
  /** The body of its webhook, in which the phone stands too. */
  payload: string | null
  at: number
}

export type IdentityRow = { id: string; developerId: string; phone: string; lastVerifiedAt: number }

/** What takes people out of records. Every list is in the order of its keys and begins behind `after`. */
export type RetentionStore = {
  /** How far a walk has come; undefined before its first step. */
  checkpoint(scan: ScanName): Promise<string | undefined>
  setCheckpoint(scan: ScanName, checkpoint: string): Promise<void>
  /** @param before an id; only lower ones */
  listRequests(after: string, before: string | undefined, limit: number): Promise<RequestRow[]>
  listEvents(afterSeq: number, limit: number): Promise<EventRow[]>
  listIdentities(after: string, limit: number): Promise<IdentityRow[]>
  /** Deliveries with their events, to find those of some events. */
  listDeliveries(after: string, limit: number): Promise<Array<{ id: string; eventSeq: number }>>
  /** With the end user's address and the metadata, which may tell of the same person. */
  replaceInRequest(id: string, phone: string): Promise<void>
  replaceInEvent(seq: number, phone: string, payload: string | null): Promise<void>
  /** Only where it still is the number, and was not verified since. */
  replaceInIdentity(id: string, currentPhone: string, phone: string, verifiedUntil: number): Promise<boolean>
  deleteIdentity(id: string): Promise<void>
  /** What receivers answered to deliveries of that id range, both ends included. */
  clearResponses(from: string, to: string): Promise<void>
  /** The id of the delivery that ends the next step of the walk over answers; undefined at its end. */
  findResponseBatchEnd(after: string, before: string, limit: number): Promise<string | undefined>
  /** The messages of requests: who carries them under which id, and what lies in inboxes. */
  deleteMessages(requestIds: readonly string[]): Promise<void>
  /** Answers kept for repeated calls that name this phone. */
  deleteIdempotencyResults(phone: string): Promise<number>
}
