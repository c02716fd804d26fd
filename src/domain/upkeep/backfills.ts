import type { Keyring, Purpose } from '../model/keys.ts'
import type { BackfillState } from '../store/backfills.ts'
import type { Store, Stores } from '../store/store.ts'

/** Brings the rows of one kind to the newest version of a key, in small transactions. It may be interrupted. */
export type Backfill = {
  /** Unique name, which never changes. */
  name: string
  /** Data key whose newest version the rows are brought to. */
  purpose: Purpose
  /**
   * Handles the next rows, in one write transaction. It is safe to repeat.
   *
   * @param position where the backfill stands; '' at its beginning
   * @returns the new position; undefined at the end
   */
  step(tx: Stores, position: string, limit: number): Promise<string | undefined>
}

/**
 * Purposes whose old versions no row needs once their backfills have ended. Hashes are chained and need all versions: see
 * `indexHash`. Seals belong here when every sealed column has its backfill; custom webhook headers have none yet.
 */
const replaceable: readonly Purpose[] = ['codes']

/**
 * Creates the runner of the backfills that follow a replacement of data keys. Each backfill also runs once in a new or upgraded
 * database, at version 1. After the last backfill of a purpose its old versions are deleted. Rows and position are stored in
 * one transaction per batch, so a backfill goes on where it was interrupted.
 *
 * @param needs.keyring refreshed after its old versions were deleted
 * @param needs.onEnded called when a backfill has ended
 */
export function createBackfills(needs: {
  store: Store
  keyring: Pick<Keyring, 'newestVersion' | 'hasOldVersions'> & { refresh(): void | Promise<void> }
  backfills: readonly Backfill[]
  onEnded?: (backfill: Backfill) => void
}) {
  const { store, keyring, backfills, onEnded = () => {} } = needs

  const hasEnded = (states: readonly BackfillState[], backfill: Backfill) =>
    states.some(
      ({ backfill: name, version, position }) =>
        name === backfill.name && version === keyring.newestVersion(backfill.purpose) && position === null,
    )

  /** @returns whether the backfill has ended */
  async function takeStep(backfill: Backfill, limit: number): Promise<boolean> {
    const next = await store.write(async (tx) => {
      // Read inside the transaction, which is also when replaced keys are noticed.
      const version = keyring.newestVersion(backfill.purpose)
      const state = await tx.backfills.lock(backfill.name, version)
      const from = state.version === version ? state.position : ''
      if (from === null) return undefined
      const reached = await backfill.step(tx, from, limit)
      await tx.backfills.put({ backfill: backfill.name, version, position: reached ?? null })
      return reached
    })
    if (next !== undefined) return false
    onEnded(backfill)
    return true
  }

  /** Deletes the old versions of each key whose backfills have all ended. */
  async function deleteOldVersions(): Promise<void> {
    if (!replaceable.some(keyring.hasOldVersions)) return
    const areDeleted = await store.write(async (tx) => {
      const states = await tx.backfills.list()
      let hasDeleted = false
      for (const purpose of replaceable) {
        const version = keyring.newestVersion(purpose)
        const backfillsOfPurpose = backfills.filter((backfill) => backfill.purpose === purpose)
        if (backfillsOfPurpose.length === 0) continue
        const isFinished = backfillsOfPurpose.every((backfill) => hasEnded(states, backfill))
        if (isFinished && (await tx.backfills.deleteVersionsBefore(purpose, version))) hasDeleted = true
      }
      return hasDeleted
    })
    if (areDeleted) await keyring.refresh()
  }

  return {
    /** Records backfills as ended without running them: a new database has no rows. */
    skip: (names: ReadonlyArray<Pick<Backfill, 'name' | 'purpose'>>): Promise<void> =>
      store.write(async (tx) => {
        for (const { name, purpose } of names)
          await tx.backfills.put({ backfill: name, version: keyring.newestVersion(purpose), position: null })
      }),

    /**
     * Runs all backfills that have not ended, in batches of one transaction each.
     *
     * @param throttle.yieldToRequests called after each batch; false stops the run
     * @param names only these backfills, without the deletion of old versions
     */
    async run(
      throttle: { batchSize: number; yieldToRequests(): Promise<boolean> },
      names?: readonly string[],
    ): Promise<void> {
      // Read once: usually all backfills have ended, and this runs every two seconds while rows change.
      const states = await store.read.backfills.list()
      for (const backfill of backfills.filter(({ name }) => names?.includes(name) ?? true)) {
        if (hasEnded(states, backfill)) continue
        while (!(await takeStep(backfill, throttle.batchSize))) {
          if (!(await throttle.yieldToRequests())) return
        }
      }
      if (names === undefined) await deleteOldVersions()
    },
  }
}
