import type { CallingApplication } from '../model/application.ts'
import type { Facade } from '../model/compat.ts'
import { ServiceError } from '../model/errors.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { parsePhone } from '../model/phone.ts'
import { isLiving, type OtpRequest } from '../model/request.ts'
import type { SendResult } from './complete-send.ts'
import type { OtpNeeds } from './operations.ts'
import type { SendInput } from './outgoing.ts'
import type { createOtpResend } from './resend.ts'
import type { createOtpSend } from './send.ts'
import { findHead, findLivingMadeBy, findMadeBy, moved } from './target.ts'

/**
 * Creates the operations of façades whose APIs have one verification of a phone at a time. Everything else they do with
 * the operations of the API.
 */
export function createVerifications(
  needs: Pick<OtpNeeds, 'store' | 'keys' | 'clock'>,
  { sendFor }: Pick<ReturnType<typeof createOtpSend>, 'sendFor'>,
  { resendFor }: Pick<ReturnType<typeof createOtpResend>, 'resendFor'>,
) {
  return {
    /**
     * Sends the code of the living verification once more that this façade made for the phone; without one, makes a new
     * one. Calls for one phone at once act one after the other.
     *
     * @throws as `send` and `resend`, but for RESEND_TOO_SOON; CONFLICT (RESENDS_EXHAUSTED) says when the code expires
     */
    async start(
      facade: Facade,
      application: CallingApplication,
      input: SendInput,
      scope?: IdempotencyScope,
    ): Promise<SendResult> {
      const { phone } = parsePhone(input.phone)
      /** Ids of requests that have ended since they were found. */
      const ended = new Set<string>()
      for (;;) {
        // Before the requests: one that is made meanwhile is then noticed.
        const newestRequest = await findHead(needs, application, phone)
        const found = await findMadeBy(facade, needs, application, phone)
        const result =
          found && isLiving(found, needs.clock.now()) && !ended.has(found.id)
            ? await resend(found)
            : await sendFor({ facade, newestRequest }, application, input, scope)
        if (result !== moved) return result
        if (found) ended.add(found.id)
      }

      async function resend(request: OtpRequest) {
        const target = { requestId: request.id, isLiving: true }
        try {
          return await resendFor(target, application, input, scope)
        } catch (error) {
          throw error instanceof ServiceError && error.reason === 'RESENDS_EXHAUSTED'
            ? withWait(error, request.expiresAt - needs.clock.now())
            : error
        }
      }
    },

    /**
     * Sends a new code. The one that this façade sent to the phone before, if it can still be verified, is canceled in the
     * same transaction.
     *
     * @throws as `send`
     */
    async replace(facade: Facade, application: CallingApplication, input: SendInput): Promise<SendResult> {
      const { phone } = parsePhone(input.phone)
      for (;;) {
        const newestRequest = await findHead(needs, application, phone)
        const living = await findLivingMadeBy(facade, needs, application, phone)
        const result = await sendFor({ facade, newestRequest, replaces: living?.id }, application, input)
        if (result !== moved) return result
      }
    },

    /** Finds the newest verification that a façade made for a phone, in any state. @throws INVALID_PHONE_NUMBER */
    findVerification: (facade: Facade, application: CallingApplication, phone: string) =>
      findMadeBy(facade, needs, application, phone),
  }
}

/** Adds how long to wait: after the end of this code, the next call makes a new one. */
function withWait(error: ServiceError, waitMs: number): ServiceError {
  const { code, message, reason, metadata, rate } = error
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000))
  return Object.assign(new ServiceError(code, message, { reason, metadata, retryAfterSeconds }), { rate })
}
