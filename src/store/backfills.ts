import { and, eq, lt } from 'drizzle-orm'
import type { BackfillStore } from '../domain/store/backfills.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'

/** Stores how far the backfills have come that bring rows to the newest version of a key. */
export function createBackfillStore({ database, executor }: Connection): BackfillStore {
  const { dataKeys, backfills: states, meta } = database.tables
  const backfills = onTable(executor, states)
  return {
    list: () => backfills.list(),

    async lock(backfill, version) {
      const initial = { backfill, version, position: '' }
      // There is nothing to lock before the first step.
      await backfills.insertMissing(initial)
      await database.lock(executor, states, states.backfill, backfill)
      return (await backfills.find(eq(states.backfill, backfill))) ?? initial
    },

    async put({ backfill, version, position }) {
      await backfills.put(
        { backfill, version, position },
        { target: states.backfill, set: { version, position } },
      )
    },

    async deleteVersionsBefore(purpose, version) {
      const isOlder = and(eq(dataKeys.purpose, purpose), lt(dataKeys.version, version))
      const deleted = await onTable(executor, dataKeys).take(isOlder)
      if (deleted.length === 0) return false
      // Tells every process to read the keys again.
      await onTable(executor, meta).update({ value: database.world.uuid() }, eq(meta.name, 'key_epoch'))
      return true
    },
  }
}
