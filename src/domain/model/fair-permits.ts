/** Names who takes a permit. */
export type PermitHolder = {
  developerId: string
  /** Whether it is an event or a message of a `test` application. */
  isTest?: boolean | undefined
}

export type FairPermits = {
  /** Whether the developer may have another permit. */
  canTake(use: PermitHolder): boolean
  /** Takes a permit. @returns a function that gives it back, to be called once; undefined if there is none */
  take(use: PermitHolder): (() => void) | undefined
  /** Number of free permits. */
  free(): number
  /** Lists the uses that get no permit now, though there may be free ones. */
  excluded(): PermitHolder[]
  /** Copies the permits, to plan who would take them. */
  fork(): FairPermits
}

/** A worker that leases due messages or deliveries. */
export type ClaimRequest = {
  /** Unique id of the worker, never reused. */
  owner: string
  now: number
  leaseUntil: number
  /** The worker's free permits. The claim takes one for each row that it leases. */
  permits: FairPermits
}

/**
 * Shares a limited number of permits among developers, without a queue: a developer gets another permit only while it
 * holds less than `share` of the free ones (dynamic thresholds, Choudhury and Hahne 1998). With a third, one developer
 * alone holds at most a quarter of all permits; n developers hold equal parts, and 3 / (3 + n) stays free for the next
 * one; with 1 these are a half and 1 / (1 + n). What belongs to `test` applications gets a permit only below half of that
 * threshold.
 *
 * @param max number of permits
 */
export const createFairPermits = (max: number, share: number) => createPermits(max, share, new Map())

function createPermits(free: number, share: number, heldBefore: ReadonlyMap<string, number>): FairPermits {
  const heldBy = new Map(heldBefore)

  const canTake = ({ developerId, isTest }: PermitHolder) =>
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
    fork: () => createPermits(free, share, heldBy),
  }
}
