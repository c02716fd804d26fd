import type { Keys } from '../model/keys.ts'
import { sealedTables } from '../model/sealed-tables.ts'
import type { Store } from '../store/store.ts'
import type { KeyWalk } from './key-walks.ts'
import type { PurgeThrottle } from './retention.ts'

const walkName = (table: string) => `seals.${table}`

/** Follows the walks: overwrites what the rows of before left behind. Its state is stored as theirs is. */
const freeSpaceWalk = walkName('free_space')

/** Lists the walks that a new database can skip: it has neither rows nor free space. */
export const walksToSkip = (walks: readonly KeyWalk[]) => [
  ...walks,
  { name: freeSpaceWalk, purpose: 'seals' as const },
]

/** Seals plain values and those of older keys, table by table. */
export const sealWalks: readonly KeyWalk[] = sealedTables.map((table) => ({
  name: walkName(table),
  purpose: 'seals',
  step: (tx, position, limit) => tx.sealing.sealRows(table, position, limit),
}))

/**
 * Creates the task that seals a database with the newest key and leaves no older value in the file.
 *
 * @param needs.runWalks runs all walks that have not ended
 * @param needs.database overwrites deleted data
 * @param needs.onStart called when a run finds something to seal
 * @param needs.onSealed called once everything is sealed, and the free space overwritten
 */
export function createSealTask(needs: {
  store: Store<'keyWalks'>
  keys: Pick<Keys, 'seals'>
  runWalks(throttle: PurgeThrottle): Promise<void>
  database: {
    secureDelete(on: boolean): void
    overwriteFreeSpace(yieldToRequests: () => Promise<boolean>): Promise<boolean>
  }
  onStart(): void
  onSealed(): void
}) {
  const { store, keys, runWalks, database, onStart, onSealed } = needs
  let sealedVersion: number | undefined

  /** Lists the walks that have not ended, with their version read before the states. */
  async function listUnfinished(version: number): Promise<string[]> {
    const states = await store.read.keyWalks.list()
    const ended = new Set(
      states.filter((state) => state.version === version && state.position === null).map(({ walk }) => walk),
    )
    return [...sealWalks.map(({ name }) => name), freeSpaceWalk].filter((name) => !ended.has(name))
  }

  /** Continues where the last run was interrupted, even by a crash. @returns whether everything is sealed */
  return async (throttle: PurgeThrottle): Promise<boolean> => {
    const { version } = keys.seals
    if (sealedVersion === version) return runWalks(throttle).then(() => true)
    const unfinished = await listUnfinished(version)
    if (unfinished.length === 0) {
      sealedVersion = version
      return runWalks(throttle).then(() => true)
    }
    if (unfinished.length > 1) onStart()
    database.secureDelete(true)
    try {
      await runWalks(throttle)
      if ((await listUnfinished(version)).length > 1) return false
      if (!(await database.overwriteFreeSpace(() => throttle.yieldToRequests()))) return false
      await store.write((tx) => tx.keyWalks.put({ walk: freeSpaceWalk, version, position: null }))
      onSealed()
      return true
    } finally {
      database.secureDelete(false)
    }
  }
}
