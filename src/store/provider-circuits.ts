import { asc, eq } from 'drizzle-orm'
import type { FailureClass } from '../domain/model/delivery.ts'
import type { RestingProviderStore } from '../domain/otp/provider-circuits.ts'
import type { Builders, Database } from './engine/database.ts'

export function createRestingProviderStore(database: Database, on: Builders): RestingProviderStore {
  const { restingProviders: providers } = database.tables
  return {
    async put(provider) {
      const { failure, restingUntil } = provider
      await on
        .insert(providers)
        .values(provider)
        .onConflictDoUpdate({ target: [providers.name], set: { failure, restingUntil } })
    },
    async remove(name) {
      await on.delete(providers).where(eq(providers.name, name))
    },
    async list() {
      const rows = await on.select().from(providers).orderBy(asc(providers.name))
      // `put` is the only writer.
      return rows.map((row) => ({ ...row, failure: row.failure as FailureClass }))
    },
    async clear() {
      await on.delete(providers)
    },
  }
}
