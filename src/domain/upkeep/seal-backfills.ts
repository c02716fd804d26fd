import type { Keys } from '../model/keys.ts'
import { sealedTables } from '../model/sealed-tables.ts'
import type { Store } from '../store/store.ts'
import type { Backfill } from './backfills.ts'
import type { PurgeThrottle } from './retention.ts'

const backfillName = (table: string) => `seals.${table}`

/** Follows the backfills: overwrites what the rows of before left behind. Its state is stored as theirs is. */
const freeSpaceBackfill = backfillName('free_space')

/** Lists the backfills that a new database can skip: it has neither rows nor free space. */
export const backfillsToSkip = (backfills: readonly Backfill[]) => [
  ...backfills,
  { name: freeSpaceBackfill, purpose: 'seals' as const },
]

/** Seals plain values and those of older keys, table by table. */
export const sealBackfills: readonly Backfill[] = sealedTables.map((table) => ({
  name: backfillName(table),
  purpose: 'seals',
  step: (tx, position, limit) => tx.sealing.sealRows(table, position, limit),
}))

/**
 * Creates the task that seals a database with the newest key and leaves no older value in the file.
 *
 * @param needs.runBackfills runs all backfills that have not ended
 * @param needs.database overwrites deleted data
 * @param needs.onStart called when a run finds something to seal
 * @param needs.onSealed called once everything is sealed, and the free space overwritten
 */
export function createSealTask(needs: {
  store: Store<'backfills'>
  keys: Pick<Keys, 'seals'>
  runBackfills(throttle: PurgeThrottle): Promise<void>
  database: {
    secureDelete(on: boolean): void
    overwriteFreeSpace(yieldToRequests: () => Promise<boolean>): Promise<boolean>
  }
  onStart(): void
  onSealed(): void
}) {
  const { store, keys, runBackfills, database, onStart, onSealed } = needs
  let sealedVersion: number | undefined

  /** Lists the backfills that have not ended, with their version read before the states. */
  async function listUnfinished(version: number): Promise<string[]> {
    const states = await store.read.backfills.list()
    const ended = new Set(
      states
        .filter((state) => state.version === version && state.position === null)
        .map(({ backfill }) => backfill),
    )
    return [...sealBackfills.map(({ name }) => name), freeSpaceBackfill].filter((name) => !ended.has(name))
  }

  /** Continues where the last run was interrupted, even by a crash. @returns whether everything is sealed */
  return async (throttle: PurgeThrottle): Promise<boolean> => {
    const { version } = keys.seals
    if (sealedVersion === version) return runBackfills(throttle).then(() => true)
    const unfinished = await listUnfinished(version)
    if (unfinished.length === 0) {
      sealedVersion = version
      return runBackfills(throttle).then(() => true)
    }
    if (unfinished.length > 1) onStart()
    database.secureDelete(true)
    try {
      await runBackfills(throttle)
      if ((await listUnfinished(version)).length > 1) return false
      if (!(await database.overwriteFreeSpace(() => throttle.yieldToRequests()))) return false
      await store.write((tx) => tx.backfills.put({ backfill: freeSpaceBackfill, version, position: null }))
      onSealed()
      return true
    } finally {
      database.secureDelete(false)
    }
  }
}
