import { and, asc, desc, eq, lt, sql } from 'drizzle-orm'
import type { IdentityStore } from '../domain/store/identities.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

export function createIdentityStore(database: Database, executor: QueryExecutor): IdentityStore {
  const { identities, identityApplications: links } = database.tables
  const p = sql.placeholder

  const findByPhone = database.prepare(() =>
    executor
      .select()
      .from(identities)
      .where(
        and(
          eq(identities.developerId, sql.param(p('developerId'), identities.developerId)),
          sql`${identities.phone} in (${p('phone')}, ${p('pseudonym')})`,
        ),
      ),
  )
  const countVerification = database.prepare(() =>
    executor
      .update(identities)
      .set({
        verificationCount: sql`${identities.verificationCount} + 1`,
        lastVerifiedAt: sql`${p('now')}`,
      })
      .where(
        and(
          eq(identities.id, p('id')),
          eq(identities.lastVerifiedAt, p('lastVerifiedAt')),
          eq(identities.phone, p('phone')),
        ),
      )
      .returning({ id: identities.id }),
  )
  const insert = database.prepare(() =>
    executor
      .insert(identities)
      .values({
        id: p('id'),
        developerId: p('developerId'),
        phone: p('phone'),
        country: p('country'),
        verificationCount: p('verificationCount'),
        firstVerifiedAt: p('firstVerifiedAt'),
        lastVerifiedAt: p('lastVerifiedAt'),
      })
      .onConflictDoNothing({ target: [identities.developerId, identities.phone] })
      .returning({ id: identities.id }),
  )
  const addApplication = database.prepare(() =>
    executor
      .insert(links)
      .values({ identityId: p('identityId'), appId: p('appId') })
      .onConflictDoNothing(),
  )
  type ListFilter = { developerId: string | number; limit: number; before: string | undefined }
  const list = prepareFiltered(database, ({ developerId, limit, before }: FilterPlaceholders<ListFilter>) =>
    executor
      .select()
      .from(identities)
      .where(and(eq(identities.developerId, developerId), before && lt(identities.id, before)))
      .orderBy(orderByLimit(desc(identities.id), limit)),
  )
  const listLinks = prepareFiltered(
    database,
    ({ identityIds }: FilterPlaceholders<{ identityIds: string[] }>) =>
      executor
        .select()
        .from(links)
        .where(sql`${links.identityId} in ${identityIds}`)
        .orderBy(asc(links.appId)),
  )

  return {
    async findByPhone(developerId, phone, pseudonym) {
      const rows = await findByPhone({ developerId, phone, pseudonym })
      return rows.find((identity) => identity.phone === phone) ?? rows[0]
    },

    async applicationsByIdentity(identityIds) {
      const byIdentity = new Map<string, string[]>()
      if (identityIds.length === 0) return byIdentity
      const rows = await listLinks({ identityIds })
      for (const { identityId, appId } of rows) {
        const ids = byIdentity.get(identityId)
        if (ids) ids.push(appId)
        else byIdentity.set(identityId, [appId])
      }
      return byIdentity
    },

    list: (developerId, limit, before) => list({ developerId: database.shortId(developerId), limit, before }),

    async insert(identity) {
      return (await insert(identity)).length === 1
    },

    async restorePhone({ id, phone: pseudonym }, phone) {
      await executor
        .update(identities)
        .set({ phone })
        .where(and(eq(identities.id, id), eq(identities.phone, pseudonym)))
    },

    async countVerification({ id, lastVerifiedAt, phone }, now) {
      return (await countVerification({ id, lastVerifiedAt, phone, now })).length === 1
    },

    async addApplication(identityId, appId) {
      await addApplication({ identityId, appId })
    },
  }
}
