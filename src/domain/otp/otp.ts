import { recheckCaller, type CallingApplication } from '../apps/authentication.ts'
import type { Developer } from '../accounts/developers.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { isId } from '../model/ids.ts'
import { endRequest, markEnded, recordEnd, refusalOf, type OtpNeeds } from './lifecycle.ts'
import type { OtpRequest, OtpStatus } from '../model/request.ts'
import { otpRate, type RatedOperation } from './rates.ts'
import { createOtpSend } from './send.ts'
import { createOtpVerify } from './verify.ts'
import { pageOf, readPosition, type Page, type PageRequest } from '../model/pages.ts'
import { peek, type RateState } from '../limits/rate-limit.ts'

export type OtpService = ReturnType<typeof createOtpService>

export type OtpFilter = { appId?: string | undefined; status?: OtpStatus | undefined }

/** Everything that can be done with one-time passcodes: send, resend, verify, cancel, look. */
export function createOtpService(needs: OtpNeeds) {
  const { store, clock, newId, plans } = needs

  return {
    ...createOtpSend(needs),
    ...createOtpVerify(needs),

    /** What is left of an application's rate, without a call being counted. Undefined where there is no limit. */
    rateOf: (application: CallingApplication, operation: RatedOperation): Promise<RateState | undefined> =>
      peek(store.read, otpRate(plans, application, operation), clock.now()),

    /** @throws NOT_FOUND; ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED it has ended */
    async cancel(application: CallingApplication, requestId: string): Promise<OtpRequest> {
      const result = await store.write(async (tx): Promise<OtpRequest | ServiceError> => {
        const now = clock.now()
        await recheckCaller(tx, application)
        const request = isId('otp', requestId) ? await tx.otpRequests.find(requestId) : undefined
        if (request?.appId !== application.id) return notFound()
        const refusal = await refusalOf(tx, newId, request, now)
        if (refusal) return refusal
        return (await endRequest(tx, newId, requestId, { status: 'canceled' }, now)) ?? notFound()
      })
      if (result instanceof ServiceError) throw result
      return result
    },

    /** Newest first. A page looks at so many requests only, whatever the filter leaves of them. @throws INVALID_ARGUMENT (CURSOR_INVALID) */
    async list(developer: Developer, filter: OtpFilter, page: PageRequest): Promise<Page<OtpRequest>> {
      const before = readPosition(page, 'otp')
      const nowhere = filter.appId !== undefined && !isId('app', filter.appId)
      const owner = { developerId: developer.id, appId: filter.appId }
      const isFiltered = filter.appId !== undefined || filter.status !== undefined
      const end = isFiltered && !nowhere ? await store.read.windows.ofRequests(owner, before) : undefined
      if (end && end.developerId !== developer.id) return pageOf([], page.limit, String)
      const query = { ...owner, status: filter.status, now: clock.now(), limit: page.limit + 1, before }
      const rows = nowhere ? [] : await store.read.otpRequests.list({ ...query, from: end?.key })
      return pageOf(rows, page.limit, (request) => request.id, end?.key)
    },

    /** @param owner whose request it must be: a developer, or one application @throws NOT_FOUND */
    async get(owner: { developerId: string } | { appId: string }, id: string): Promise<OtpRequest> {
      const request = isId('otp', id) ? await store.read.otpRequests.find(id) : undefined
      const owned =
        'appId' in owner ? request?.appId === owner.appId : request?.developerId === owner.developerId
      if (!request || !owned) throw notFound()
      return request
    },

    /**
     * Ends what nobody asked for again. Works in chunks, each a transaction of its own, and may run at any time.
     *
     * @returns how many requests expired
     */
    async expireDue(chunk = 100): Promise<number> {
      let expired = 0
      for (;;) {
        const due = await store.read.otpRequests.listDue(clock.now(), chunk)
        if (due.length === 0) return expired
        await store.write(async (tx) => {
          const now = clock.now()
          // Always in the same order, so that two nodes at once wait for each other and not in a ring.
          const ids = due.map(({ id }) => id).toSorted()
          const ended = await markEnded(tx, ids, { status: 'expired' }, now)
          for (const request of ended) await recordEnd(tx, newId, request, now)
        })
        expired += due.length
      }
    },
  }
}
