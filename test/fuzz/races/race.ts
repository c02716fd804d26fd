import type { Database } from '../../../src/store/engine/database.ts'

/** Property of concurrent calls. A unit test runs few rounds on each database, `npm run fuzz` many. */
export type Race = {
  name: string
  /** Set if the race is about HTTP calls and not about a database. */
  sqliteOnly?: true
  open(database: Database): Promise<OpenRace>
}

export type OpenRace = {
  /** Runs a round. @param random chooses the order of the calls. @throws Error if the property does not hold */
  round(index: number, random: () => number): Promise<void>
  /** @throws Error if the rounds did not produce all expected outcomes, so that the calls did not really race */
  finish?(): void
  close(): Promise<void>
}

/** Number of calls that race each other. */
export const concurrentCalls = 50

/** Starts calls in random order. @returns their results, by index */
export async function runConcurrently<T>(
  count: number,
  random: () => number,
  call: (index: number) => T | Promise<T>,
): Promise<Awaited<T>[]> {
  const order = Array.from({ length: count }, (_, index) => ({ index, rank: random() }))
  const started: Array<T | Promise<T>> = []
  for (const { index } of order.toSorted((a, b) => a.rank - b.rank)) started[index] = call(index)
  return Promise.all(started)
}

/**
 * Waits for nothing in half of the cases, otherwise for up to 25 ms.
 *
 * Of two calls that start at the same moment, the one with fewer statements may win each time on some machines.
 */
export async function maybeStartLater(random: () => number): Promise<void> {
  if (random() < 0.5) await Bun.sleep(random() * 25)
}

/** Runs rounds, and more of them if some expected outcome has not occurred. */
export async function runRounds(race: OpenRace, rounds: number, random: () => number) {
  for (let index = 0; index < rounds; index++) await race.round(index, random)
  await requireAllOutcomes(race, rounds, random)
}

/** Even an outcome with a chance of 1 in 50 per round fails to occur in this many with a chance below 1 in 100 million. */
const moreRoundsMax = 1_000

/** Runs more rounds until every expected outcome has occurred, before a missing one counts as a finding. */
export async function requireAllOutcomes(race: OpenRace, roundsDone: number, random: () => number) {
  const end = roundsDone + moreRoundsMax
  for (let index = roundsDone; index < end && !hasShownAllOutcomes(race); index++)
    await race.round(index, random)
  race.finish?.()
}

function hasShownAllOutcomes(race: OpenRace): boolean {
  try {
    race.finish?.()
    return true
  } catch {
    return false
  }
}
