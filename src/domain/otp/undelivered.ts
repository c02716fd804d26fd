import type { Guard } from '../guard/guard.ts'
import type { Clock } from '../model/clock.ts'
import type { Keys } from '../model/keys.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Store } from '../store/store.ts'
import { loadPhone } from './phones.ts'
import { senderOf } from './sender.ts'

/**
 * Reverts the guard's counts of a request whose messages were not delivered, so that a provider outage does
 * not get countries blocked. Runs a transaction of its own, which locks the application's row and that of the phone
 * first, as sends do. Never rejects.
 */
export async function revertGuardCounts(
  needs: {
    store: Pick<Store<'applications' | 'checkBudgets' | 'guard' | 'phones'>, 'write'>
    clock: Clock
    keys: Keys
    guard: Guard
  },
  request: OtpRequest,
): Promise<void> {
  const { store, clock, keys, guard } = needs
  try {
    await store.write(async (tx) => {
      const now = clock.now()
      // Only for the row lock; the application's state does not matter.
      await tx.applications.lockAndCheckCredentials(request.appId, 0)
      const { record } = await loadPhone(tx, keys, request)
      await guard.revertCounts(tx, request, senderOf(record, request), now)
    })
  } catch (error) {
    guard.onFault(error)
  }
}
