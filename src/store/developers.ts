import { and, asc, eq, getTableColumns, isNull, sql } from 'drizzle-orm'
import type { DeveloperStore } from '../domain/store/developers.ts'
import type { Connection } from './engine/connection.ts'
import { onTable, prepareFind } from './engine/on-table.ts'
import { textParam } from './engine/query-params.ts'

export function createDeveloperStore(connection: Connection): DeveloperStore {
  const { database, executor } = connection
  const { developers, refreshTokens } = database.tables
  const rows = onTable(executor, developers)
  const configurationChanged = () => database.sqlite?.configuration.increment()
  const hasSubject = and(
    eq(developers.issuer, sql.placeholder('issuer')),
    eq(developers.subject, sql.placeholder('subject')),
  )
  const findBySubject = prepareFind(connection, developers, 'issuer', 'subject')
  const hasSession = sql`exists (select 1 from ${refreshTokens} where ${refreshTokens.family} = ${textParam('sessionId')})`
  // Prepared because every console request runs it.
  const selectLogin = database.prepare(() =>
    executor
      .select({ ...getTableColumns(developers), hasSession: hasSession.mapWith(Boolean) })
      .from(developers)
      .where(hasSubject),
  )

  return {
    find: (id) => rows.find(eq(developers.id, id)),

    findBySubject: (issuer, subject) => findBySubject({ issuer, subject }),

    async findLogin(issuer, subject, sessionId) {
      const [row] = await selectLogin({ issuer, subject, sessionId })
      if (!row) return undefined
      const { hasSession, ...developer } = row
      return { developer, hasSession }
    },

    findByEmail: (email) => rows.list(eq(developers.email, email)),

    hasAny: async () => (await rows.find()) !== undefined,

    list: () => rows.list(undefined, asc(developers.id)),

    async insert(developer) {
      const isInserted = await rows.insertMissing(developer)
      configurationChanged()
      return isInserted
    },

    async claimInvitation(email, { issuer, subject, name }, now) {
      const [developer] = await rows.change(
        { issuer, subject, updatedAt: now, name: sql`coalesce(${developers.name}, ${name})` },
        and(eq(developers.email, email), isNull(developers.issuer)),
      )
      configurationChanged()
      return developer
    },

    async update(id, changes, now) {
      const [developer] = await rows.change({ ...changes, updatedAt: now }, eq(developers.id, id))
      configurationChanged()
      return developer
    },

    async setTokensValidFrom(id, tokensValidFrom) {
      await rows.update({ tokensValidFrom }, eq(developers.id, id))
      configurationChanged()
    },

    async anonymize(id, now) {
      const anonymizedFields = { issuer: null, subject: null, email: null, name: null, company: null }
      await rows.update({ ...anonymizedFields, status: 'disabled', updatedAt: now }, eq(developers.id, id))
      configurationChanged()
    },

    async lock(id) {
      await database.lock(executor, developers, developers.id, id)
    },
  }
}
