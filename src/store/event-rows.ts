/**
 * The number of an entry that is appended by the open transaction on PostgreSQL.
 *
 * @param offset of the entry to the last one of those that were appended together; 0 for that one, -1 for the one before
 */
export const afterLastSeq = (offset: string) =>
  `(select value from counters where name = 'event_seq') + ${offset}`

/**
 * Names the row of an entry's phone in the associated data: that of its request, so that both hold the same value. Entries
 * without a request do not share theirs, which would show that they are of one number.
 */
export const phoneRow = ({ requestId, at }: { requestId: string | null; at: number }) => requestId ?? `${at}`

/** Names an entry in the associated data of its sealed payload. */
export const payloadRow = ({ requestId, type, at }: { requestId: string | null; type: string; at: number }) =>
  `${requestId ?? ''} ${type} ${at}`
