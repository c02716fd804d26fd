import { readRefusal } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import type { Developer } from '../model/developer.ts'
import { notFound } from '../model/errors.ts'
import { reject, unwrap, type Rejected } from '../model/rejected.ts'
import { isId } from '../model/ids.ts'
import type { OtpNeeds } from './needs.ts'
import { otpRateLimit, type RatedCall } from './rate-limits.ts'
import { nameClosableRows, closeRequest, readClosable, refuseIfClosed } from './lifecycle.ts'
import type { Decision } from '../store/operation.ts'
import { isExpired, type ListedRequest, type OtpRequest } from '../model/request.ts'
import type { OtpFilter } from '../store/otp-requests.ts'
import { createOtpProve } from './prove.ts'
import { createOtpResend } from './resend.ts'
import { createOtpSend } from './send.ts'
import { createPhoneSearch } from './phone-search.ts'
import { createRequestLog, type RequestEntry } from '../log/request-log.ts'
import { createRequestFinder, readTarget, requestNotFound, type OtpTarget } from './target.ts'
import { createVerifications } from './verifications.ts'
import type { RequestOwner } from './needs.ts'
import { createSessions } from './sessions.ts'
import { createOtpVerify } from './verify.ts'
import { toPage, readIdCursor, readSeqCursor, type Page, type PageRequest } from '../model/pagination.ts'
import { peekRateLimit } from '../limits/rate-limit.ts'
import type { RateState } from '../model/rate-limit.ts'

export type OtpService = ReturnType<typeof createOtpService>

/** Operations on one-time passcodes: send, resend, verify, cancel, list, get, expire. */
export function createOtpService(needs: OtpNeeds) {
  const { store, clock, newId, plans } = needs
  const readEntries = createRequestLog(needs)

  const sends = createOtpSend(needs)
  const resends = createOtpResend(needs)
  const { check, verify, checkOperation } = createOtpVerify(needs)

  return {
    send: sends.send,
    resend: resends.resend,
    check,
    verify,
    ...createOtpProve(needs),
    ...createVerifications(needs, sends, resends),
    sessions: createSessions(needs, { ...sends, ...resends, checkOperation }),

    /**
     * Reads the state of an application's rate limit without counting a call. Undefined if there is no limit.
     */
    async peekRate(application: CallingApplication, operation: RatedCall): Promise<RateState | undefined> {
      // On PostgreSQL the caller has no version: its plan may be an old one.
      const isCurrent = application.configurationVersion !== undefined
      const caller = isCurrent ? application : await store.read.applications.findSigning(application.id)
      const limit = otpRateLimit(plans, caller ?? application, operation)
      return peekRateLimit(store.read, limit, clock.now())
    },

    /**
     * Cancels a pending request.
     *
     * @throws INVALID_PHONE_NUMBER; NOT_FOUND; ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED when it
     *   is closed
     */
    async cancel(application: CallingApplication, target: OtpTarget): Promise<OtpRequest> {
      const read = await readTarget(needs, application, target)
      const finder = createRequestFinder(needs, application, read)
      const canceled = unwrap(
        await store.decide({
          preload: {
            lookUp: finder.lookUp,
            first: (rows) => ({ application, ...finder.nameRows(rows), subscribers: application.id }),
            next: finder.lookUp && finder.nameRows,
          },
          decide(rows): Decision<OtpRequest | Rejected> {
            const now = rows.now()
            const refusal = readRefusal(rows, application)
            if (refusal) return { result: refusal, changes: [] }
            const request = finder.find(rows, now)
            if (!request) return { result: reject(requestNotFound(read)), changes: [] }
            const closable = { request, subscribers: rows.subscribers(application.id) }
            return (
              refuseIfClosed(newId, closable, now) ??
              closeRequest(newId, closable, { status: 'canceled' }, now)
            )
          },
        }),
      )
      needs.onEnded(canceled)
      return canceled
    },

    /**
     * Lists requests, newest first.
     *
     * @throws INVALID_ARGUMENT (CURSOR_INVALID)
     */
    async list(
      developer: Pick<Developer, 'id'>,
      filter: OtpFilter,
      page: PageRequest,
    ): Promise<Page<ListedRequest>> {
      const before = readIdCursor(page, 'otp')
      const query = {
        developerId: developer.id,
        ...filter,
        now: clock.now(),
        limit: page.limit + 1,
        before,
      }
      const rows = await store.read.otpRequests.list(query)
      return toPage(rows, page.limit, (request) => request.id)
    },

    get,

    /** Lists the log entries and tries of a request, oldest first. @throws NOT_FOUND; CURSOR_INVALID */
    async events(owner: RequestOwner, id: string, page: PageRequest): Promise<Page<RequestEntry>> {
      const entries = await readEntries(await get(owner, id))
      const start = readSeqCursor(page) ?? 0
      const items = entries.slice(start, start + page.limit)
      const end = start + items.length
      return { items, limit: page.limit, nextCursor: end < entries.length ? String(end) : null }
    },

    /** Lists the requests of a number, or of its last digits, newest first. @throws INVALID_PHONE_NUMBER; CURSOR_INVALID */
    listByPhone: createPhoneSearch(needs),

    /** Reads how long it takes until the next request expires; infinite if none is pending. */
    untilNextExpiryMs,

    /**
     * Sweeper: closes expired requests, each in an operation of its own. May run at any time.
     *
     * @param mayGoOn asked before each batch; false ends the sweep
     * @returns how many requests it found expired
     */
    async expireRequests(batchSize = 100, mayGoOn = () => true): Promise<number> {
      let expiredCount = 0
      while (mayGoOn() && (await untilNextExpiryMs()) <= 0) {
        const expired = await store.read.otpRequests.listExpired(clock.now(), batchSize)
        if (expired.length === 0) return expiredCount
        // In the order of their ids, in which the log tells them.
        const ids = expired.map(({ id }) => id).toSorted()
        await Promise.all(ids.map(expire))
        expiredCount += expired.length
      }
      return expiredCount
    },
  }

  async function untilNextExpiryMs(): Promise<number> {
    return ((await store.read.otpRequests.nextExpiryAt()) ?? Infinity) - clock.now()
  }

  /** Finds a request. @throws NOT_FOUND */
  async function get(owner: RequestOwner, id: string): Promise<OtpRequest> {
    const request = isId('otp', id) ? await store.read.otpRequests.find(id) : undefined
    const isOwned =
      'appId' in owner ? request?.appId === owner.appId : request?.developerId === owner.developerId
    if (!request || !isOwned) throw notFound('otpRequest')
    return request
  }

  async function expire(id: string): Promise<void> {
    const expired = await store.decide({
      preload: { first: () => ({ request: id }), next: (rows) => nameClosableRows(rows, id) },
      decide(rows): Decision<OtpRequest | undefined> {
        const closable = readClosable(rows, id)
        const now = rows.now()
        if (!closable || !isExpired(closable.request, now)) return { result: undefined, changes: [] }
        return closeRequest(newId, closable, { status: 'expired' }, now)
      },
    })
    if (expired) needs.onEnded(expired)
  }
}
