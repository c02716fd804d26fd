/** Names who takes a place. */
export type PlaceUse = {
  developerId: string
  /** Whether it is an event or a message of a `test` application. */
  isTest?: boolean | undefined
}

export type FairPlaces = {
  /** Whether the developer may have another place. */
  canTake(use: PlaceUse): boolean
  /** Takes a place. @returns a function that gives it back, to be called once; undefined if there is none */
  take(use: PlaceUse): (() => void) | undefined
  /** Number of free places. */
  free(): number
  /** Lists the uses that get no place now, though there may be free ones. */
  excluded(): PlaceUse[]
  /** Copies the places, to plan who would take them. */
  fork(): FairPlaces
}

/**
 * Shares a limited number of places among developers, without a queue: a developer gets another place only while it
 * holds less than `share` of the free ones (dynamic thresholds, Choudhury and Hahne 1998). With a third, one developer
 * alone holds at most a quarter of all places; n developers hold equal parts, and 3 / (3 + n) stays free for the next
 * one; with 1 these are a half and 1 / (1 + n). What belongs to `test` applications gets a place only below half of that
 * threshold.
 *
 * @param max number of places
 */
export const createFairPlaces = (max: number, share: number) => createPlaces(max, share, new Map())

function createPlaces(free: number, share: number, heldBefore: ReadonlyMap<string, number>): FairPlaces {
  const heldBy = new Map(heldBefore)

  const canTake = ({ developerId, isTest }: PlaceUse) =>
    (heldBy.get(developerId) ?? 0) < free * (isTest ? share / 2 : share)

  return {
    canTake,
    take(use) {
      if (!canTake(use)) return undefined
      const { developerId } = use
      heldBy.set(developerId, (heldBy.get(developerId) ?? 0) + 1)
      free--
      return () => {
        const left = (heldBy.get(developerId) ?? 1) - 1
        if (left > 0) heldBy.set(developerId, left)
        else heldBy.delete(developerId)
        free++
      }
    },
    free: () => free,
    excluded: () =>
      [...heldBy.keys()]
        .flatMap((developerId) => [true, false].map((isTest) => ({ developerId, isTest })))
        .filter((use) => !canTake(use)),
    fork: () => createPlaces(free, share, heldBy),
  }
}
