import { and, asc, between, eq, gt, lte } from 'drizzle-orm'
import type { LoginAttemptStore } from '../domain/accounts/login-attempts.ts'
import type { Builders, Database } from './engine/database.ts'

/** The name under which failed logins stand among the admissions of the rate limits. */
const policy = 'login'
/** Keeps the subjects side by side in the table's key, so that old ones are found without reading everybody's. */
const prefix = 'login:'
const afterPrefix = 'login;'

export function createLoginAttemptStore(database: Database, on: Builders): LoginAttemptStore {
  const { rateAdmissions: attempts } = database.tables
  const of = (subject: string) => and(eq(attempts.subject, prefix + subject), eq(attempts.policy, policy))

  return {
    list: async (subject, since) =>
      on
        .select({ at: attempts.at, seq: attempts.seq })
        .from(attempts)
        .where(and(of(subject), gt(attempts.at, since)))
        .orderBy(asc(attempts.at), asc(attempts.seq)),

    async insert(subject, attempt) {
      await on.insert(attempts).values({ ...attempt, subject: prefix + subject, policy })
    },

    async delete(subject, { at, seq }) {
      await on.delete(attempts).where(and(of(subject), eq(attempts.at, at), eq(attempts.seq, seq)))
    },

    async deleteBefore(time) {
      const ours = and(between(attempts.subject, prefix, afterPrefix), eq(attempts.policy, policy))
      await on.delete(attempts).where(and(ours, lte(attempts.at, time)))
    },
  }
}
