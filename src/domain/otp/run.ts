import { withGuard } from '../guard/fail-open.ts'
import type { GuardJudge } from '../guard/judge.ts'
import type { Operation } from '../store/operation.ts'
import type { OtpNeeds } from './operations.ts'
import { loadPhone, MisplacedPhoneError, readMovedPhone, readPhone } from './phones.ts'

/** Parts of an operation that differ when it runs again. */
export type Attempt = { guard: GuardJudge; readPhone: typeof readPhone }

/**
 * Runs an operation that reads a phone and may ask the guard. If the guard itself fails, it runs again without it (fail
 * open); if what is kept about the phone is elsewhere, that is moved first, in a transaction of its own.
 */
export function run<R>(
  { store, keys, guard }: Pick<OtpNeeds, 'store' | 'keys' | 'guard'>,
  toOperation: (attempt: Attempt) => Operation<R>,
): Promise<R> {
  return withGuard(guard, async (judge) => {
    try {
      return await store.decide(toOperation({ guard: judge, readPhone }))
    } catch (error) {
      if (!(error instanceof MisplacedPhoneError)) throw error
      await store.write((tx) => loadPhone(tx, keys, error.subscriber))
      return store.decide(toOperation({ guard: judge, readPhone: readMovedPhone }))
    }
  })
}
