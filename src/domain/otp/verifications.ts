import type { CallingApplication } from '../model/application.ts'
import type { Facade } from '../model/compat.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { parsePhone } from '../model/phone.ts'
import type { OtpNeeds } from './needs.ts'
import type { SendInput } from './new-message.ts'
import type { createOtpResend } from './resend.ts'
import type { createOtpSend } from './send.ts'
import { completeSend, type SendResult } from './send-result.ts'
import { createPhoneFinder, findMadeBy } from './target.ts'

/**
 * Creates the operations of façades whose APIs have one verification of a phone at a time. Everything else they do with
 * the operations of the API.
 */
export function createVerifications(
  needs: OtpNeeds,
  { sendOperation }: ReturnType<typeof createOtpSend>,
  { resendOperation }: ReturnType<typeof createOtpResend>,
) {
  return {
    /**
     * Sends the code of the pending verification once more that this façade made for the phone; without one, makes a new
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
      const phone = parsePhone(input.phone)
      const finder = createPhoneFinder(needs, application, phone, facade)
      const send = sendOperation({ application, phone, input, scope, facade })
      const resend = resendOperation({ application, finder, choice: input, scope })
      const outcome = await needs.store.decide({
        preload: {
          lookUp: finder.lookUp,
          first: (rows) => ({ ...send.preload.first(rows), ...resend.preload.first(rows) }),
          next(rows) {
            const { preload } = finder.find(rows, rows.now()) ? resend : send
            return { ...preload.next?.(rows), ...finder.nameRows(rows) }
          },
        },
        decide: (rows) => (finder.find(rows, rows.now()) ? resend : send).decide(rows),
      })
      return completeSend(needs, application, scope, outcome)
    },

    /**
     * Sends a new code. The one that this façade sent to the phone before, if it can still be verified, is canceled in the
     * same transaction.
     *
     * @throws as `send`
     */
    async replace(facade: Facade, application: CallingApplication, input: SendInput): Promise<SendResult> {
      const phone = parsePhone(input.phone)
      const replaced = createPhoneFinder(needs, application, phone, facade)
      const operation = sendOperation({ application, phone, input, facade }, replaced)
      return completeSend(needs, application, undefined, await needs.store.decide(operation))
    },

    /** Finds the newest verification that a façade made for a phone, in any state. @throws INVALID_PHONE_NUMBER */
    findVerification: (facade: Facade, application: CallingApplication, phone: string) =>
      findMadeBy(facade, needs, application, phone),
  }
}
