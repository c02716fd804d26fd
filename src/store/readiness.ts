import type { ReadinessStore } from '../domain/store/readiness.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

const name = 'readiness_probed_at'

export function createReadinessStore(database: Database, executor: QueryExecutor): ReadinessStore {
  const { meta } = database.tables
  return {
    async probe(at) {
      const value = String(at)
      await executor
        .insert(meta)
        .values({ name, value })
        .onConflictDoUpdate({ target: meta.name, set: { value } })
    },
  }
}
