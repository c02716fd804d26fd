import { revalidateCaller } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import type { Developer } from '../model/developer.ts'
import { notFound } from '../model/errors.ts'
import { reject, unwrap, type Rejected } from '../model/rejected.ts'
import { isId } from '../model/ids.ts'
import type { OtpNeeds } from './operations.ts'
import { otpRateLimit, type RatedOperation } from './rate-limits.ts'
import { closeAndPublish, closeRequests, publishClosed, rejectIfClosed } from './lifecycle.ts'
import type { OtpRequest, OtpStatus } from '../model/request.ts'
import { createOtpSend } from './send.ts'
import { createOtpVerify } from './verify.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import { peekRateLimit } from '../limits/rate-limit.ts'
import type { RateState } from '../model/rate-limit.ts'

export type OtpService = ReturnType<typeof createOtpService>

export type OtpFilter = { appId?: string | undefined; status?: OtpStatus | undefined }

/** Operations on one-time passcodes: send, resend, verify, cancel, list, get, expire. */
export function createOtpService(needs: OtpNeeds) {
  const { store, clock, newId, plans } = needs

  return {
    ...createOtpSend(needs),
    ...createOtpVerify(needs),

    /**
     * Reads the state of an application's rate limit without counting a call. Undefined if there is no limit.
     */
    peekRate: (application: CallingApplication, operation: RatedOperation): Promise<RateState | undefined> =>
      peekRateLimit(store.read, otpRateLimit(plans, application, operation), clock.now()),

    /**
     * Cancels a pending request.
     *
     * @throws NOT_FOUND; ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED when it is closed
     */
    async cancel(application: CallingApplication, requestId: string): Promise<OtpRequest> {
      const result = await store.write(async (tx): Promise<OtpRequest | Rejected> => {
        const now = clock.now()
        await revalidateCaller(tx, application)
        const request = isId('otp', requestId) ? await tx.otpRequests.find(requestId) : undefined
        if (request?.appId !== application.id) return reject(notFound())
        const rejected = await rejectIfClosed(tx, newId, request, now)
        if (rejected) return rejected
        return (
          (await closeAndPublish(tx, newId, requestId, { status: 'canceled' }, now)) ?? reject(notFound())
        )
      })
      return unwrap(result)
    },

    /**
     * Lists requests, newest first. A filtered page scans at most `scanRowsMax` rows and may be short.
     *
     * @throws INVALID_ARGUMENT (CURSOR_INVALID)
     */
    async list(developer: Developer, filter: OtpFilter, page: PageRequest): Promise<Page<OtpRequest>> {
      const before = readIdCursor(page, 'otp')
      const matchesNothing = filter.appId !== undefined && !isId('app', filter.appId)
      const owner = { developerId: developer.id, appId: filter.appId }
      const isFiltered = filter.appId !== undefined || filter.status !== undefined
      const boundary =
        isFiltered && !matchesNothing ? await store.read.scanLimits.forRequests(owner, before) : undefined
      if (boundary && boundary.developerId !== developer.id) return toPage([], page.limit, String)
      const query = { ...owner, status: filter.status, now: clock.now(), limit: page.limit + 1, before }
      const rows = matchesNothing ? [] : await store.read.otpRequests.list({ ...query, from: boundary?.key })
      return toPage(rows, page.limit, (request) => request.id, boundary?.key)
    },

    /** Finds a request. @param owner the developer or application that it must belong to @throws NOT_FOUND */
    async get(owner: { developerId: string } | { appId: string }, id: string): Promise<OtpRequest> {
      const request = isId('otp', id) ? await store.read.otpRequests.find(id) : undefined
      const isOwned =
        'appId' in owner ? request?.appId === owner.appId : request?.developerId === owner.developerId
      if (!request || !isOwned) throw notFound()
      return request
    },

    /**
     * Sweeper: closes expired requests. Works in batches, each in its own transaction, and may run at any
     * time.
     *
     * @returns how many requests it found expired
     */
    async expireRequests(batchSize = 100): Promise<number> {
      let expiredCount = 0
      for (;;) {
        const expiredRequests = await store.read.otpRequests.listExpired(clock.now(), batchSize)
        if (expiredRequests.length === 0) return expiredCount
        await store.write(async (tx) => {
          const now = clock.now()
          // Sorted so that concurrent nodes lock rows in the same order (no deadlock).
          const ids = expiredRequests.map(({ id }) => id).toSorted()
          const closedRequests = await closeRequests(tx, ids, { status: 'expired' }, now)
          for (const request of closedRequests) await publishClosed(tx, newId, request, now)
        })
        expiredCount += expiredRequests.length
      }
    },
  }
}
