import { and, eq, isNotNull, isNull, lt } from 'drizzle-orm'
import type { TotpSecretStore } from '../domain/store/totp-secrets.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'
import { pageAfter } from './engine/page-after.ts'

export function createTotpSecretStore({ database, executor }: Connection): TotpSecretStore {
  const { totpSecrets: table, recoveryCodes } = database.tables
  const secrets = onTable(executor, table)
  const codes = onTable(executor, recoveryCodes)
  const isOwn = (developerId: string) => eq(table.developerId, developerId)
  return {
    async list(after, limit) {
      const { developerId, secret } = table
      return pageAfter(executor, { developerId, secret }, developerId, after, limit)
    },

    reseal: (developerId, secret) => secrets.update({ secret }, isOwn(developerId)),
    find: (developerId) => secrets.find(isOwn(developerId)),

    async propose({ developerId, secret, createdAt }) {
      const set = { secret, createdAt }
      const conflict = { target: table.developerId, set, setWhere: isNull(table.confirmedAt) }
      return (await secrets.put({ developerId, ...set }, conflict)) !== undefined
    },

    confirm: (developerId, secret, step, now) =>
      secrets.updateOne(
        { confirmedAt: now, lastStep: step },
        and(isOwn(developerId), eq(table.secret, secret), isNull(table.confirmedAt)),
      ),

    useStep: (developerId, step) =>
      secrets.updateOne(
        { lastStep: step },
        and(isOwn(developerId), isNotNull(table.confirmedAt), lt(table.lastStep, step)),
      ),

    insertRecoveryCodes: (developerId, hashes) => codes.insert(hashes.map((hash) => ({ developerId, hash }))),

    async useRecoveryCode(developerId, hash) {
      const isCode = and(eq(recoveryCodes.developerId, developerId), eq(recoveryCodes.hash, hash))
      return (await codes.take(isCode)).length === 1
    },

    async delete(developerId) {
      return (await secrets.take(isOwn(developerId))).some(({ confirmedAt }) => confirmedAt !== null)
    },
  }
}
