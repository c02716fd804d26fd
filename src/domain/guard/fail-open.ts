import type { Guard, Sender } from './guard.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Store, Stores } from '../store/store.ts'

const noopGuard: Pick<Guard, 'evaluate' | 'recordConversion' | 'revert'> = {
  evaluate: () => Promise.resolve({ blocked: false, violatedRules: [] }),
  recordConversion: () => Promise.resolve(),
  revert: () => Promise.resolve(),
}

/**
 * Reverts the guard's counts of a request whose messages were not delivered, so that a provider outage does
 * not get countries blocked. Runs a transaction of its own, which locks the application's row first, as sends
 * do. Never rejects.
 *
 * @param readSender reads the sender as at the send
 */
export async function revertGuardCounts(
  store: Pick<Store, 'write'>,
  guard: Guard,
  request: OtpRequest,
  readSender: (tx: Stores) => Promise<Sender>,
  now: number,
): Promise<void> {
  try {
    await store.write(async (tx) => {
      // Only for the row lock; the application's state does not matter.
      await tx.applications.lockAndCheckCredentials(request.appId, 0)
      await guard.revert(tx, request, await readSender(tx), now)
    })
  } catch (error) {
    guard.onFault(error)
  }
}

/**
 * Runs a transaction that uses the guard, and fails open: if the guard itself fails, the transaction runs
 * again without it, since a user waiting for a code matters more than a count. The whole transaction is
 * repeated because the guard's part cannot be rolled back alone (after an error PostgreSQL aborts the
 * transaction).
 */
export async function withGuard<T>(guard: Guard, run: (guard: Guard) => Promise<T>): Promise<T> {
  let fault: { error: unknown } | undefined
  const trackFault = async <R>(call: Promise<R>): Promise<R> => {
    try {
      return await call
    } catch (error) {
      fault = { error }
      throw error
    }
  }
  try {
    return await run({
      ...guard,
      evaluate: (...args) => trackFault(guard.evaluate(...args)),
      recordConversion: (...args) => trackFault(guard.recordConversion(...args)),
      revert: (...args) => trackFault(guard.revert(...args)),
    })
  } catch (error) {
    if (fault === undefined) throw error
    guard.onFault(fault.error)
    return await run({ ...guard, ...noopGuard })
  }
}
