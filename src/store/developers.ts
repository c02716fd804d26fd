import { eq } from 'drizzle-orm'
import type { DeveloperStore } from '../domain/developers.ts'
import type { Builders, Database } from './database.ts'

export function createDeveloperStore(database: Database, on: Builders): DeveloperStore {
  const { developers } = database.tables

  return {
    async find(id) {
      const [developer] = await on.select().from(developers).where(eq(developers.id, id))
      return developer
    },

    async findByVirtualPhone(phone) {
      const [developer] = await on.select().from(developers).where(eq(developers.virtualPhone, phone))
      return developer
    },

    async insert(developer) {
      await on.insert(developers).values(developer)
    },

    lock: (id) => database.lock(on, developers, developers.id, id),
  }
}
