import type { Database } from '../../../src/store/engine/database.ts'

/** What holds however many calls come at once. A unit test runs few rounds on each database, `npm run fuzz` many. */
export type Race = {
  name: string
  /** It is about calls over HTTP, and of no database. */
  sqliteOnly?: true
  open(database: Database): Promise<OpenRace>
}

export type OpenRace = {
  /** @param random chooses who goes first. Throws where something did not hold. */
  round(index: number, random: () => number): Promise<void>
  /** Throws where the rounds did not show all that they should: then they were no race. */
  finish?(): void
  close(): Promise<void>
}

/** How many calls race each other. */
export const concurrentCalls = 50

/** Starts so many calls, in an order of chance. @returns what they came to, by their index */
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

/** Runs so many rounds, and more of them where they have not shown all that they should. */
export async function runRounds(race: OpenRace, rounds: number, random: () => number) {
  for (let index = 0; index < rounds; index++) await race.round(index, random)
  await requireAllOutcomes(race, rounds, random)
}

/** An outcome that one round in fifty has on some machines is missed by so many not once in a hundred million times. */
const moreRoundsMax = 1_000

/** Chance may give one outcome for many rounds: many more before that counts as a finding. */
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
