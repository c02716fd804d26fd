import { revalidateCaller, type CallingApplication } from '../apps/authentication.ts'
import type { Developer } from '../accounts/developers.ts'
import { notFound } from '../model/errors.ts'
import { reject, unwrap, type Rejected } from '../model/rejected.ts'
import { isId } from '../model/ids.ts'
import {
  otpRateLimit,
  type RatedOperation,
  closeAndPublish,
  closeRequests,
  publishClosed,
  rejectIfClosed,
  type OtpNeeds,
} from './lifecycle.ts'
import type { OtpRequest, OtpStatus } from '../model/request.ts'
import { createOtpSend } from './send.ts'
import { createOtpVerify } from './verify.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import { peekRateLimit, type RateState } from '../limits/rate-limit.ts'

export type OtpService = ReturnType<typeof createOtpService>

export type OtpFilter = { appId?: string | undefined; status?: OtpStatus | undefined }

/** Everything that can be done with one-time passcodes: send, resend, verify, cancel, look. */
export function createOtpService(needs: OtpNeeds) {
  const { store, clock, newId, plans } = needs

  return {
    ...createOtpSend(needs),
    ...createOtpVerify(needs),

    /** What is left of an application's rate, without a call being counted. Undefined where there is no limit. */
    peekRate: (application: CallingApplication, operation: RatedOperation): Promise<RateState | undefined> =>
      peekRateLimit(store.read, otpRateLimit(plans, application, operation), clock.now()),

    /** @throws NOT_FOUND; ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED it has ended */
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

    /** Newest first. A page looks at so many requests only, whatever the filter leaves of them. @throws INVALID_ARGUMENT (CURSOR_INVALID) */
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

    /** @param owner whose request it must be: a developer, or one application @throws NOT_FOUND */
    async get(owner: { developerId: string } | { appId: string }, id: string): Promise<OtpRequest> {
      const request = isId('otp', id) ? await store.read.otpRequests.find(id) : undefined
      const isOwned =
        'appId' in owner ? request?.appId === owner.appId : request?.developerId === owner.developerId
      if (!request || !isOwned) throw notFound()
      return request
    },

    /**
     * Ends what nobody asked for again. Works in chunks, each a transaction of its own, and may run at any time.
     *
     * @returns how many requests expired
     */
    async expireRequests(batchSize = 100): Promise<number> {
      let expiredCount = 0
      for (;;) {
        const expiredRequests = await store.read.otpRequests.listExpired(clock.now(), batchSize)
        if (expiredRequests.length === 0) return expiredCount
        await store.write(async (tx) => {
          const now = clock.now()
          // Always in the same order, so that two nodes at once wait for each other and not in a ring.
          const ids = expiredRequests.map(({ id }) => id).toSorted()
          const closedRequests = await closeRequests(tx, ids, { status: 'expired' }, now)
          for (const request of closedRequests) await publishClosed(tx, newId, request, now)
        })
        expiredCount += expiredRequests.length
      }
    },
  }
}
