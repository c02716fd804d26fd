import type { RateLimitStore } from '../domain/store/rate-limits.ts'
import type { Connection } from './engine/connection.ts'
import { measure } from '../domain/model/rate-limit.ts'
import { createRateLimitRows } from './rate-limit-rows.ts'

/** Stores the admissions of the sliding-window log: in memory on SQLite, rows on PostgreSQL. */
export function createRateLimitStore(connection: Connection): RateLimitStore {
  const { database, executor } = connection
  if (database.postgres) return createRateLimitRows(connection, database.postgres.admissionTable)
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
