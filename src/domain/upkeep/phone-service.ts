import type { Actor } from '../model/audit.ts'
import { ServiceError } from '../model/errors.ts'
import { noSuchPhone, tryParseTypedPhone } from '../model/typed-phone.ts'
import { erasePhone, type ErasureResult } from './erasure.ts'
import { unlockPhone, type UnlockResult } from './unlock.ts'

export type PhoneService = ReturnType<typeof createPhoneService>

/**
 * Creates the service with which developers unlock and erase phones in their own records.
 *
 * @param needs.yieldToRequests awaited after each page of records
 */
export function createPhoneService(
  needs: Parameters<typeof erasePhone>[0] &
    Parameters<typeof unlockPhone>[0] & { yieldToRequests: () => Promise<void> },
) {
  const erasing = new Set<string>()

  return {
    /**
     * Erases a phone from all records of a developer. Reads all of them, so one erasure of a developer runs at a time.
     *
     * @throws NOT_FOUND nothing is kept about the phone; CONFLICT (ERASURE_IN_PROGRESS)
     */
    async erase(actor: Actor, input: string, country?: string): Promise<ErasureResult> {
      const phone = requirePhone(input, country)
      if (erasing.has(actor.id)) throw erasureInProgress()
      erasing.add(actor.id)
      try {
        return await erasePhone(needs, phone, { actor, yieldToRequests: needs.yieldToRequests })
      } finally {
        erasing.delete(actor.id)
      }
    },

    /** Resets the limits of a phone. @throws NOT_FOUND nothing is kept about the phone */
    async unlock(actor: Actor, input: string, country?: string): Promise<UnlockResult> {
      return unlockPhone(needs, requirePhone(input, country), actor)
    },
  }
}

/** @throws NOT_FOUND for what cannot be a phone number, as a look-up does */
function requirePhone(input: string, country: string | undefined): string {
  const phone = tryParseTypedPhone(input, country)?.phone
  if (phone === undefined) throw noSuchPhone()
  return phone
}

const erasureInProgress = () =>
  new ServiceError('CONFLICT', 'Another erasure in this account is still running. Try again in a moment.', {
    reason: 'ERASURE_IN_PROGRESS',
  })
