import { and, eq, lt, sql } from 'drizzle-orm'
import type { KeyWalkStore } from '../domain/store/key-walks.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

/** Stores how far the walks have come that bring rows to the newest version of a key. */
export function createKeyWalkStore(database: Database, executor: QueryExecutor): KeyWalkStore {
  const { dataKeys, keyWalks, meta } = database.tables
  return {
    list: async () => executor.select().from(keyWalks),

    async put({ walk, version, position }) {
      await executor
        .insert(keyWalks)
        .values({ walk, version, position })
        .onConflictDoUpdate({ target: keyWalks.walk, set: { version, position } })
    },

    async deleteVersionsBefore(purpose, version) {
      const deleted = await executor
        .delete(dataKeys)
        .where(and(eq(dataKeys.purpose, purpose), lt(dataKeys.version, version)))
        .returning({ version: dataKeys.version })
      if (deleted.length === 0) return false
      // Tells every process to read the keys again.
      const epoch = database.world.uuid()
      await executor
        .update(meta)
        .set({ value: sql`${epoch}` })
        .where(eq(meta.name, 'key_epoch'))
      return true
    },
  }
}
