import { and, asc, desc, eq, gt, gte, inArray, lte, sql, type SQL } from 'drizzle-orm'
import type { RateLimitStore } from '../domain/limits/rate-limit.ts'
import { boundInteger, boundText, onlyFirst } from './engine/typed-placeholders.ts'
import type { Builders, Database } from './engine/database.ts'
import { deleteOldest } from './engine/delete-oldest.ts'
import type { Tables } from './engine/tables.ts'

/** What the index of times has: spelled out, as SQLite knows it again by its words. */
export const isTimed = ({ policy }: Tables['rateAdmissions']): SQL =>
  sql`${policy} not in ('otp-send', 'otp-verify')`

export function createRateLimitStore(database: Database, on: Builders): RateLimitStore {
  const { rateAdmissions: log, applications } = database.tables
  // What it has not: one or two ranges of the key for each application.
  const ofApplications = () =>
    and(
      inArray(log.subject, on.select({ id: applications.id }).from(applications)),
      sql`${log.policy} in ('otp-send', 'otp-verify')`,
    )
  const columns = { at: log.at, seq: log.seq }
  const of = and(eq(log.subject, boundText('subject')), eq(log.policy, boundText('policy')))
  const newest = database.prepare(() =>
    on
      .select(columns)
      .from(log)
      .where(of)
      .orderBy(desc(log.at), onlyFirst(desc(log.seq))),
  )
  const oldest = database.prepare(() =>
    on
      .select(columns)
      .from(log)
      .where(and(of, gt(log.at, boundInteger('after'))))
      .orderBy(asc(log.at), onlyFirst(asc(log.seq))),
  )
  const insert = database.prepare(() =>
    on.insert(log).values({
      subject: sql.placeholder('subject'),
      policy: sql.placeholder('policy'),
      at: sql.placeholder('at'),
      seq: sql.placeholder('seq'),
    }),
  )

  const deleteUntil = database.prepare(() => on.delete(log).where(and(of, lte(log.at, boundInteger('time')))))

  return {
    async newest(subject, policy) {
      const [admission] = await newest({ subject, policy })
      return admission
    },

    async oldestAfter(subject, policy, after, skip) {
      if (skip === 0) return (await oldest({ subject, policy, after }))[0]
      const [admission] = await on
        .select(columns)
        .from(log)
        .where(and(eq(log.subject, subject), eq(log.policy, policy), gt(log.at, after)))
        .orderBy(asc(log.at), asc(log.seq))
        .limit(1)
        .offset(skip)
      return admission
    },

    async insert(subject, policy, admission) {
      await insert({ subject, policy, ...admission })
    },

    async deleteUntil(subject, policy, time) {
      await deleteUntil({ subject, policy, time })
    },

    async deleteAfter(subject, policy, time) {
      await on.delete(log).where(and(eq(log.subject, subject), eq(log.policy, policy), gt(log.at, time)))
    },

    async listSubjectsOfPhone(phoneHash) {
      // As spendSendBudget names them: the application, a colon, the hash.
      const end = sql`substr(${log.subject}, length(${log.subject}) - ${phoneHash.length})`
      const rows = await on
        .selectDistinct({ subject: log.subject })
        .from(log)
        .where(sql`${end} = ${`:${phoneHash}`}`)
      return rows.map(({ subject }) => subject)
    },

    async deleteSubject(subject) {
      return (await on.delete(log).where(eq(log.subject, subject)).returning({ at: log.at })).length
    },

    async deleteOfApplication(appId) {
      // Not the range from `app:` to `app;`: PostgreSQL orders punctuation as its locale does.
      const ofIt = sql`substr(${log.subject} || ':', 1, ${appId.length + 1}) = ${`${appId}:`}`
      const deleted = await on
        .delete(log)
        .where(and(gte(log.subject, appId), ofIt))
        .returning({ at: log.at })
      return deleted.length
    },

    async pullBack(time) {
      for (const some of [isTimed(log), ofApplications()]) {
        await on
          .update(log)
          .set({ at: time })
          .where(and(some, gt(log.at, time)))
      }
    },

    async deleteOldest(until, chunk) {
      if (await deleteOldest(on, log, log.at, until, chunk, isTimed(log))) return true
      // Few: each application prunes its own with every eighth call, so that only those that fell silent have any.
      await on.delete(log).where(and(ofApplications(), lte(log.at, until)))
      return false
    },
  }
}
