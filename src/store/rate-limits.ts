import type { RateLimitStore } from '../domain/store/rate-limits.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { measure } from '../domain/model/rate-limit.ts'
import { createRateLimitRows } from './rate-limit-rows.ts'

/** Stores the admissions of the sliding-window log: in memory on SQLite, rows on PostgreSQL. */
export function createRateLimitStore(database: Database, executor: QueryExecutor): RateLimitStore {
  if (database.postgres) return createRateLimitRows(database, executor, database.postgres.admissionTable)
  const { admissions, refresh } = database.sqlite
  return {
    usage(limit, now) {
      if (executor === database.read) refresh()
      return measure(admissions.find(limit.subject, limit.policy), limit, now)
    },
    insert(list) {
      for (const admission of list) admissions.insert(admission)
    },
    forget: async (subject) => admissions.forget(subject),
    latestTimestamp: async () => admissions.latestTimestamp(),
    clampToNow: async (now) => admissions.clampToNow(now),
    deleteOldest: async (until, batchSize) => admissions.deleteOldest(until, batchSize),
  }
}
