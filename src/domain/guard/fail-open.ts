import type { Guard } from './guard.ts'

const noopGuard: Pick<Guard, 'evaluate' | 'recordConversion'> = {
  evaluate: () => Promise.resolve({ blocked: false, violatedRules: [] }),
  recordConversion: () => Promise.resolve(),
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
    })
  } catch (error) {
    if (fault === undefined) throw error
    guard.onFault(fault.error)
    return await run({ ...guard, ...noopGuard })
  }
}
