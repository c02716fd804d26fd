import { GuardFault } from '../../domain/model/guard.ts'

/** A call that waits. It has a failure if the transaction that it shared has failed: it then runs in one of its own. */
type WaitingCall = { failure?: unknown }

export const isAlone = ({ failure }: WaitingCall): boolean => failure !== undefined

/** Takes the calls that wait longest: one that runs alone, or all before such a one. */
export function takeTogether<C extends WaitingCall>(waiting: C[], countMax: number): C[] {
  const alone = waiting.findIndex(isAlone)
  return waiting.splice(0, alone === -1 ? countMax : Math.min(Math.max(alone, 1), countMax))
}

/** Tells whether calls that failed together can run again, each alone, or one without the rows of the guard. */
export const canRunAgain = (calls: readonly WaitingCall[], error: unknown): boolean =>
  calls.length > 1 ||
  (error instanceof GuardFault && calls.some(({ failure }) => !(failure instanceof GuardFault)))
