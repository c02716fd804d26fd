import type { Sender } from '../model/guard.ts'
import type { GuardStore } from '../store/guard.ts'
import { loadGuardFacts } from './facts.ts'
import type { GuardedMessage, GuardedRequest, GuardJudge, GuardVerdict } from './judge.ts'

type Tx = { guard: Pick<GuardStore, 'country' | 'counts' | 'contexts' | 'apply'> }

/** Calls of the guard that read, decide and write at once. They are part of the caller's transaction. */
export type GuardInTransactions = {
  /** Decides whether a message of this request may be sent, and counts it if so. */
  evaluate(tx: Tx, message: GuardedMessage, sender: Sender, now: number): Promise<GuardVerdict>
  /** Records that the code was verified. */
  recordConversion(tx: Tx, request: GuardedRequest, sender: Sender, now: number): Promise<void>
  /** Stops counting the request's messages as unverified because none was delivered. */
  revertCounts(tx: Tx, request: GuardedRequest, sender: Sender, now: number): Promise<void>
}

export function inTransactions(judge: GuardJudge): GuardInTransactions {
  return {
    async evaluate(tx, message, sender, now) {
      const facts = await loadGuardFacts(tx.guard, judge.keysToJudge(message, sender, now))
      const { verdict, changes } = judge.judge(facts, message, sender, now)
      await tx.guard.apply(changes)
      return verdict
    },

    async recordConversion(tx, request, sender, now) {
      const facts = await loadGuardFacts(tx.guard, judge.keysToConvert(request, sender))
      await tx.guard.apply(judge.convert(facts, request, now))
    },

    async revertCounts(tx, request, sender, now) {
      const facts = await loadGuardFacts(tx.guard, judge.keysToRevert(request, sender))
      await tx.guard.apply(judge.revert(facts, request, now))
    },
  }
}
