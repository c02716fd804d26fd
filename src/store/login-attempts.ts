import { and, asc, between, eq, gt, lte } from 'drizzle-orm'
import type { LoginAttemptStore } from '../domain/store/login-attempts.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

/** Policy of failed logins, which are stored in the table of rate limit admissions. */
const policy = 'login'
/** Makes the subjects one range of the primary key, so that old rows are found without a full scan. */
const subjectPrefix = 'login:'
const subjectPrefixEnd = 'login;'

/** Stores failed logins among the admissions of the rate limits. */
export function createLoginAttemptStore(database: Database, executor: QueryExecutor): LoginAttemptStore {
  const { rateAdmissions: attempts } = database.tables
  const forSubject = (subject: string) =>
    and(eq(attempts.subject, subjectPrefix + subject), eq(attempts.policy, policy))

  return {
    list: async (subject, since) =>
      executor
        .select({ at: attempts.at, seq: attempts.seq })
        .from(attempts)
        .where(and(forSubject(subject), gt(attempts.at, since)))
        .orderBy(asc(attempts.at), asc(attempts.seq)),

    async insert(subject, attempt) {
      await executor.insert(attempts).values({ ...attempt, subject: subjectPrefix + subject, policy })
    },

    async delete(subject, { at, seq }) {
      await executor
        .delete(attempts)
        .where(and(forSubject(subject), eq(attempts.at, at), eq(attempts.seq, seq)))
    },

    async deleteBefore(time) {
      const isLoginAdmission = and(
        between(attempts.subject, subjectPrefix, subjectPrefixEnd),
        eq(attempts.policy, policy),
      )
      await executor.delete(attempts).where(and(isLoginAdmission, lte(attempts.at, time)))
    },
  }
}
