import { and, asc, eq, isNull, sql } from 'drizzle-orm'
import type { DeveloperStore } from '../domain/accounts/developers.ts'
import type { Builders, Database } from './engine/database.ts'

export function createDeveloperStore(database: Database, on: Builders): DeveloperStore {
  const { developers } = database.tables
  // Every console request asks this.
  const bySubject = database.prepare(() =>
    on
      .select()
      .from(developers)
      .where(
        and(
          eq(developers.issuer, sql.placeholder('issuer')),
          eq(developers.subject, sql.placeholder('subject')),
        ),
      ),
  )

  return {
    async find(id) {
      const [developer] = await on.select().from(developers).where(eq(developers.id, id))
      return developer
    },

    async findBySubject(issuer, subject) {
      const [developer] = await bySubject({ issuer, subject })
      return developer
    },

    async findByVirtualPhone(phone) {
      const [developer] = await on.select().from(developers).where(eq(developers.virtualPhone, phone))
      return developer
    },

    findByEmail: async (email) => on.select().from(developers).where(eq(developers.email, email)),

    list: async () => on.select().from(developers).orderBy(asc(developers.id)),

    async insert(developer) {
      const inserted = await on
        .insert(developers)
        .values(developer)
        .onConflictDoNothing()
        .returning({ id: developers.id })
      return inserted.length === 1
    },

    async claimAwaited(email, { issuer, subject, name }, now) {
      const [developer] = await on
        .update(developers)
        .set({ issuer, subject, updatedAt: now, name: sql`coalesce(${developers.name}, ${name})` })
        .where(and(eq(developers.email, email), isNull(developers.issuer)))
        .returning()
      return developer
    },

    async update(id, changes, now) {
      const [developer] = await on
        .update(developers)
        .set({ ...changes, updatedAt: now })
        .where(eq(developers.id, id))
        .returning()
      return developer
    },

    async forget(id, now) {
      const nothing = { issuer: null, subject: null, email: null, name: null, company: null }
      await on
        .update(developers)
        .set({ ...nothing, status: 'disabled', updatedAt: now })
        .where(eq(developers.id, id))
    },

    lock: (id) => database.lock(on, developers, developers.id, id),
  }
}
