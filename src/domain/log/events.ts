import type { Developer } from '../model/developer.ts'
import { invalidField } from '../model/errors.ts'
import type { LogType } from '../../shared/event-kinds.ts'
import { isId } from '../model/ids.ts'
import { toPage, readSeqCursor } from '../model/pagination.ts'
import type { Store } from '../store/store.ts'
import { createRequestLog, type RequestEntry } from './request-log.ts'
import type { Environment } from '../../shared/otp-values.ts'

type LogFilter = {
  appId?: string | undefined
  environment?: Environment | undefined
  /** Only entries of this request, with its delivery attempts. */
  requestId?: string | undefined
  types?: readonly LogType[] | undefined
  limit: number
  cursor?: string | undefined
  /** The id of an entry. */
  after?: string | undefined
  order: 'asc' | 'desc'
}

type LogPage = { items: RequestEntry[]; limit: number; nextCursor: string | null }

export type LogService = ReturnType<typeof createLogService>

/** Creates the log service. */
export function createLogService({ store }: { store: Store<'events' | 'otpRequests'> }) {
  const { events, otpRequests } = store.read
  const readEntries = createRequestLog({ store })

  /** Lists what happened to a request. They are few: the page is cut from all of them. */
  async function listOfRequest(developer: Developer, requestId: string, filter: LogFilter): Promise<LogPage> {
    const { appId, environment, types, limit, cursor, after, order } = filter
    if (after !== undefined && cursor !== undefined) throw afterWithCursor()
    const end = readSeqCursor(filter)
    const request = isId('otp', requestId) ? await otpRequests.find(requestId) : undefined
    const isListed =
      request?.developerId === developer.id &&
      (appId === undefined || request.appId === appId) &&
      (environment === undefined || request.environment === environment)
    if (!isListed) return emptyPage(limit)
    const entries = await readEntries(request)
    const afterIndex = entries.findIndex(({ id }) => id === after)
    if (after !== undefined && afterIndex < 0) throw unknownAfter()
    const indexes = [...entries.keys()].filter((index) => {
      const type = entries[index]?.type
      const hasType = types === undefined || types.some((one) => one === type)
      return hasType && index > afterIndex && (end === undefined || index < end)
    })
    const page = after === undefined ? indexes.slice(-limit) : indexes.slice(0, limit)
    const items = page.flatMap((index) => entries[index] ?? [])
    const hasMore = after === undefined && indexes.length > limit
    return {
      limit,
      nextCursor: hasMore ? String(page[0]) : null,
      items: order === 'desc' ? items.toReversed() : items,
    }
  }

  return {
    /**
     * Lists the most recent entries (keyset pagination). A cursor leads to older pages; `after` lists the earliest
     * entries after that one.
     *
     * @throws INVALID_ARGUMENT `after` is unknown or combined with a cursor, or the cursor is invalid
     *   (CURSOR_INVALID)
     */
    async list(developer: Developer, filter: LogFilter): Promise<LogPage> {
      const { appId, environment, types, limit, requestId } = filter
      if (requestId !== undefined) return listOfRequest(developer, requestId, filter)
      if (filter.after !== undefined) {
        if (filter.cursor !== undefined) throw afterWithCursor()
        const afterSeq = isId('evt', filter.after) && (await events.findSeq(developer.id, filter.after))
        if (typeof afterSeq !== 'number') throw unknownAfter()
        const items = await events.list(developer.id, { appId, environment, types, limit, afterSeq })
        return { limit, nextCursor: null, items: filter.order === 'desc' ? items.toReversed() : items }
      }
      const query = { appId, environment, types, limit: limit + 1, beforeSeq: readSeqCursor(filter) }
      const rows = await events.list(developer.id, query)
      const { items, nextCursor } = toPage(rows, limit, ({ seq }) => String(seq))
      return { limit, nextCursor, items: filter.order === 'desc' ? items : items.toReversed() }
    },
  }
}

const afterWithCursor = () => invalidQuery('after', 'Cannot be combined with cursor. Send one of the two.')

const unknownAfter = () =>
  invalidQuery('after', 'Your log has no entry with this id. Use the id of an entry that you received.')

const emptyPage = (limit: number): LogPage => ({ limit, nextCursor: null, items: [] })

const invalidQuery = (path: string, message: string) => invalidField('query', path, message)
