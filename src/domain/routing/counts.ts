import { dayMs } from '../../shared/durations.ts'

/** Half-life of an outcome. */
const halfLifeMs = dayMs
const decayPerMs = Math.LN2 / halfLifeMs
/**
 * Most outcomes that a count holds. More would make the estimate hardly more exact, and slow to follow a change: with 1000,
 * half of it is from the last 700 codes.
 */
const outcomesMax = 1_000

/** Outcomes of codes with exponential decay, as of `at`. */
export type OutcomeCounts = { outcomes: number; verified: number; at: number }

export const emptyCounts = (at: number): OutcomeCounts => ({ outcomes: 0, verified: 0, at })

/** Returns the weight that outcomes have after `elapsedMs`. */
const decayFactor = (elapsedMs: number) => (elapsedMs <= 0 ? 1 : Math.exp(-decayPerMs * elapsedMs))

/** Adds outcomes to decayed counts. `counts` is changed. */
export function addOutcomes(
  counts: OutcomeCounts,
  added: { outcomes: number; verified: number },
  now: number,
): void {
  const decay = decayFactor(now - counts.at)
  const room = Math.max(0, outcomesMax - added.outcomes)
  const kept = counts.outcomes * decay
  const factor = kept > room ? (decay * room) / kept : decay
  counts.outcomes = counts.outcomes * factor + added.outcomes
  counts.verified = counts.verified * factor + added.verified
  counts.at = Math.max(counts.at, now)
}

/** Reads decayed counts as of `now`, without a change. */
export function countsAt({ outcomes, verified, at }: OutcomeCounts, now: number) {
  const decay = decayFactor(now - at)
  return { outcomes: outcomes * decay, verified: verified * decay }
}
