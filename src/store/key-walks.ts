import { and, eq, lt } from 'drizzle-orm'
import type { KeyWalkStore } from '../domain/store/key-walks.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { onTable } from './engine/on-table.ts'

/** Stores how far the walks have come that bring rows to the newest version of a key. */
export function createKeyWalkStore(database: Database, executor: QueryExecutor): KeyWalkStore {
  const { dataKeys, keyWalks, meta } = database.tables
  const walks = onTable(executor, keyWalks)
  return {
    list: () => walks.list(),

    async put({ walk, version, position }) {
      await walks.put({ walk, version, position }, { target: keyWalks.walk, set: { version, position } })
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
