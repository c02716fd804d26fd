import { pendingSlot, type GuardCounts } from '../model/guard.ts'

/** Counts one more unverified message. */
export function addUnverified(counts: GuardCounts | undefined, at: number): GuardCounts {
  const slot = pendingSlot(at)
  if (!counts) return { unverified: 1, verified: 0, slot, pending: 1, pendingBefore: 0, firstAt: at }
  const { unverified, verified, pending, pendingBefore, firstAt } = counts
  if (counts.slot === slot)
    return { unverified: unverified + 1, verified, slot, pending: pending + 1, pendingBefore, firstAt }
  const slotBefore = counts.slot === slot - 1 ? pending : 0
  return { unverified: unverified + 1, verified, slot, pending: 1, pendingBefore: slotBefore, firstAt }
}

/**
 * Subtracts messages from the unverified ones, and adds verified codes. Counts never become negative, which a request
 * that was counted in part could cause.
 *
 * @param at time of the messages
 */
export function settle(
  counts: GuardCounts,
  at: number,
  { messages, verified }: { messages: number; verified: number },
): GuardCounts {
  const slot = pendingSlot(at)
  const minus = (count: number) => Math.max(0, count - messages)
  return {
    ...counts,
    unverified: minus(counts.unverified),
    verified: counts.verified + verified,
    pending: counts.slot === slot ? minus(counts.pending) : counts.pending,
    pendingBefore: counts.slot === slot + 1 ? minus(counts.pendingBefore) : counts.pendingBefore,
  }
}

/** Counts one more message of the installation. Only `unverified` of such a row is used. */
export const addSent = (sent: number): GuardCounts => ({
  unverified: sent + 1,
  verified: 0,
  slot: 0,
  pending: 0,
  pendingBefore: 0,
  firstAt: 0,
})
