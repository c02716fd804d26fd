import { and, asc, eq, gt, isNotNull, isNull, lt } from 'drizzle-orm'
import type { TotpSecretStore } from '../domain/store/totp-secrets.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

export function createTotpSecretStore(database: Database, executor: QueryExecutor): TotpSecretStore {
  const { totpSecrets: secrets, recoveryCodes: codes } = database.tables
  const isConfirmed = (developerId: string) =>
    and(eq(secrets.developerId, developerId), isNotNull(secrets.confirmedAt))

  return {
    list: async (after, limit) =>
      executor
        .select({ developerId: secrets.developerId, secret: secrets.secret })
        .from(secrets)
        .where(gt(secrets.developerId, after))
        .orderBy(asc(secrets.developerId))
        .limit(limit),

    async reseal(developerId, secret) {
      await executor.update(secrets).set({ secret }).where(eq(secrets.developerId, developerId))
    },

    async find(developerId) {
      const [secret] = await executor.select().from(secrets).where(eq(secrets.developerId, developerId))
      return secret
    },

    async propose({ developerId, secret, createdAt }) {
      const proposed = await executor
        .insert(secrets)
        .values({ developerId, secret, createdAt })
        .onConflictDoUpdate({
          target: secrets.developerId,
          set: { secret, createdAt },
          setWhere: isNull(secrets.confirmedAt),
        })
        .returning({ id: secrets.developerId })
      return proposed.length === 1
    },

    async confirm(developerId, secret, step, now) {
      const confirmed = await executor
        .update(secrets)
        .set({ confirmedAt: now, lastStep: step })
        .where(
          and(eq(secrets.developerId, developerId), eq(secrets.secret, secret), isNull(secrets.confirmedAt)),
        )
        .returning({ id: secrets.developerId })
      return confirmed.length === 1
    },

    async useStep(developerId, step) {
      const used = await executor
        .update(secrets)
        .set({ lastStep: step })
        .where(and(isConfirmed(developerId), lt(secrets.lastStep, step)))
        .returning({ id: secrets.developerId })
      return used.length === 1
    },

    async insertRecoveryCodes(developerId, hashes) {
      await executor.insert(codes).values(hashes.map((hash) => ({ developerId, hash })))
    },

    async useRecoveryCode(developerId, hash) {
      const used = await executor
        .delete(codes)
        .where(and(eq(codes.developerId, developerId), eq(codes.hash, hash)))
        .returning({ hash: codes.hash })
      return used.length === 1
    },

    async delete(developerId) {
      const deleted = await executor
        .delete(secrets)
        .where(eq(secrets.developerId, developerId))
        .returning({ confirmedAt: secrets.confirmedAt })
      return deleted.some(({ confirmedAt }) => confirmedAt !== null)
    },
  }
}
