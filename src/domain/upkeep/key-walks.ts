import type { Keyring, Purpose } from '../model/keys.ts'
import type { KeyWalkState } from '../store/key-walks.ts'
import type { Store, Stores } from '../store/store.ts'

/** Brings the rows of one kind to the newest version of a key. */
export type KeyWalk = {
  /** Unique name, which never changes. */
  name: string
  /** Data key whose newest version the rows are brought to. */
  purpose: Purpose
  /**
   * Handles the next rows, in one write transaction. It is safe to repeat.
   *
   * @param position where the walk stands; '' at its beginning
   * @returns the new position; undefined at the end
   */
  step(tx: Stores, position: string, limit: number): Promise<string | undefined>
}

/**
 * Purposes whose old versions no row needs once their walks have ended. Hashes are chained and need all versions: see
 * `indexHash`. Seals belong here when every sealed column has its walk; custom webhook headers have none yet.
 */
const replaceable: readonly Purpose[] = ['codes']

export type KeyWalks = ReturnType<typeof createKeyWalks>

/**
 * Creates the runner of the walks that follow a replacement of data keys. Each walk also runs once in a new or upgraded
 * database, at version 1. After the last walk of a purpose its old versions are deleted. Rows and position are stored in
 * one transaction per batch, so a walk goes on where it was interrupted.
 *
 * @param needs.keyring refreshed after its old versions were deleted
 * @param needs.onEnded called when a walk has ended
 */
export function createKeyWalks(needs: {
  store: Store
  keyring: Pick<Keyring, 'newestVersion' | 'hasOldVersions'> & { refresh(): void | Promise<void> }
  walks: readonly KeyWalk[]
  onEnded?: (walk: KeyWalk) => void
}) {
  const { store, keyring, walks, onEnded = () => {} } = needs

  const hasEnded = (states: readonly KeyWalkState[], walk: KeyWalk) =>
    states.some(
      ({ walk: name, version, position }) =>
        name === walk.name && version === keyring.newestVersion(walk.purpose) && position === null,
    )

  /** @returns whether the walk has ended */
  async function takeStep(walk: KeyWalk, limit: number): Promise<boolean> {
    const next = await store.write(async (tx) => {
      // Read inside the transaction, which is also when replaced keys are noticed.
      const version = keyring.newestVersion(walk.purpose)
      const states = await tx.keyWalks.list()
      const state = states.find((candidate) => candidate.walk === walk.name)
      const from = state?.version === version ? state.position : ''
      if (from === null) return undefined
      const reached = await walk.step(tx, from, limit)
      await tx.keyWalks.put({ walk: walk.name, version, position: reached ?? null })
      return reached
    })
    if (next !== undefined) return false
    onEnded(walk)
    return true
  }

  /** Deletes the old versions of each key whose walks have all ended. */
  async function deleteOldVersions(): Promise<void> {
    if (!replaceable.some(keyring.hasOldVersions)) return
    const areDeleted = await store.write(async (tx) => {
      const states = await tx.keyWalks.list()
      let hasDeleted = false
      for (const purpose of replaceable) {
        const version = keyring.newestVersion(purpose)
        const walksOfPurpose = walks.filter((walk) => walk.purpose === purpose)
        if (walksOfPurpose.length === 0) continue
        const isFinished = walksOfPurpose.every(({ name }) =>
          states.some((state) => state.walk === name && state.version === version && state.position === null),
        )
        if (isFinished && (await tx.keyWalks.deleteVersionsBefore(purpose, version))) hasDeleted = true
      }
      return hasDeleted
    })
    if (areDeleted) await keyring.refresh()
  }

  return {
    /** Records walks as ended without running them: a new database has no rows. */
    skip: (names: ReadonlyArray<Pick<KeyWalk, 'name' | 'purpose'>>): Promise<void> =>
      store.write(async (tx) => {
        for (const { name, purpose } of names)
          await tx.keyWalks.put({ walk: name, version: keyring.newestVersion(purpose), position: null })
      }),

    /**
     * Runs all walks that have not ended, in batches of one transaction each.
     *
     * @param throttle.yieldToRequests called after each batch; false stops the run
     * @param names only these walks, without the deletion of old versions
     */
    async run(
      throttle: { batchSize: number; yieldToRequests(): Promise<boolean> },
      names?: readonly string[],
    ): Promise<void> {
      // Read once: usually all walks have ended, and this runs every two seconds while rows change.
      const states = await store.read.keyWalks.list()
      for (const walk of walks.filter(({ name }) => names?.includes(name) ?? true)) {
        if (hasEnded(states, walk)) continue
        while (!(await takeStep(walk, throttle.batchSize))) {
          if (!(await throttle.yieldToRequests())) return
        }
      }
      if (names === undefined) await deleteOldVersions()
    },
  }
}
