import { GuardFault } from '../model/guard.ts'
import type { Guard } from './guard.ts'
import { noGuardChanges } from './facts.ts'
import type { GuardJudge } from './judge.ts'

const absentGuard: GuardJudge = {
  refusedChannels: () => [],
  keysToJudge: () => undefined,
  keysToConvert: () => undefined,
  keysToRevert: () => undefined,
  judge: () => ({ verdict: { blocked: false, violatedRules: [] }, changes: noGuardChanges() }),
  convert: noGuardChanges,
  revert: noGuardChanges,
}

/**
 * Runs an operation that uses the guard, and fails open: if the guard itself fails, the operation runs again without
 * it, since a user waiting for a code matters more than a count. All of it is repeated because the guard's part cannot
 * be taken back alone (after an error PostgreSQL aborts the transaction).
 */
export async function withGuard<T>(guard: Guard, run: (guard: GuardJudge) => Promise<T>): Promise<T> {
  try {
    return await run(guard)
  } catch (error) {
    if (!(error instanceof GuardFault)) throw error
    guard.onFault(error.cause)
    return await run(absentGuard)
  }
}
