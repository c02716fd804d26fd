import { createHash } from 'node:crypto'
import type { DeliveryTry } from '../model/delivery.ts'
import { createIds, type IdPrefix } from '../model/ids.ts'
import type { LogEntry } from '../model/log-entry.ts'
import { formatRefusedSends } from '../model/refused-sends.ts'
import { formatAttempt, parseHistory } from '../model/request-history.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Store } from '../store/store.ts'

/** A log entry of a request, or a provider that was asked to deliver its message. */
export type RequestEntry = Omit<LogEntry, 'seq' | 'type'> & {
  type: LogEntry['type'] | 'delivery.attempted'
  delivery?: DeliveryTry
}

/**
 * Creates the reader of all that happened to a request, oldest first. Its history says it, also after the log has deleted
 * the entries; the log only knows their ids.
 */
export function createRequestLog({ store }: { store: Pick<Store<'events'>, 'read'> }) {
  return async (request: OtpRequest): Promise<RequestEntry[]> => {
    const { id: requestId, developerId, appId, phone } = request
    const history = parseHistory(request)
    const positions = history.flatMap((entry) =>
      'position' in entry ? [{ ...entry.position, type: entry.type }] : [],
    )
    const located = (await store.read.events.locate(request, positions)).values()
    return history.map((entry): RequestEntry => {
      const common = { developerId, appId, requestId, phone, at: entry.at }
      const ownId = (prefix: IdPrefix) => deriveId(prefix, entry.at, `${requestId} ${entry.line}`)
      if (entry.type === 'delivery.attempted') {
        const { line: _line, type, ...delivery } = entry
        return { ...common, id: ownId('att'), type, status: 'pending', detail: null, delivery }
      }
      if (entry.type === 'otp.refused')
        return {
          ...common,
          id: ownId('evt'),
          type: entry.type,
          status: null,
          detail: formatRefusedSends(entry),
        }
      const { type, status, attempt } = entry
      const detail = attempt === undefined ? entry.detail : formatAttempt(attempt)
      return { ...common, id: located.next().value?.id ?? ownId('evt'), type, status, detail }
    })
  }
}

/** Derives the id of an entry that has no row of its own: the same each time. */
function deriveId(prefix: IdPrefix, at: number, name: string): string {
  const hash = createHash('sha256').update(name).digest()
  return createIds({ now: () => at }, (bytes) => bytes.set(hash.subarray(0, bytes.length)))(prefix)
}
