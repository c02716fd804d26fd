import { and, desc, eq, isNull, lt, lte, or, sql } from 'drizzle-orm'
import type { ApiTokenStore } from '../domain/store/api-tokens.ts'
import { apiTokenScopes } from '../shared/api-token-scopes.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'

/** @param onAccessEnded called with the developer's id before a transaction commits that revokes tokens */
export function createApiTokenStore(
  { database, executor }: Connection,
  onAccessEnded: (developerId: string) => void,
): ApiTokenStore {
  const { apiTokens: tokens, developers } = database.tables
  const rows = onTable(executor, tokens)
  // Prepared because every request with an API token runs it.
  const selectByPreview = database.prepare(() =>
    executor
      .select({ token: tokens, developer: developers })
      .from(tokens)
      .innerJoin(developers, eq(developers.id, tokens.developerId))
      .where(eq(tokens.preview, sql.placeholder('preview'))),
  )
  type ListFilter = { developerId: string; limit: number; before: string | undefined }
  const list = prepareFiltered(database, ({ developerId, limit, before }: FilterPlaceholders<ListFilter>) =>
    executor
      .select()
      .from(tokens)
      .where(and(eq(tokens.developerId, developerId), before && lt(tokens.id, before)))
      .orderBy(orderByLimit(desc(tokens.id), limit)),
  )

  return {
    async findByPreview(preview) {
      const rows = await selectByPreview({ preview })
      return rows.map(({ token, developer }) => ({ token: withScopes(token), developer }))
    },

    async list(developerId, limit, before) {
      const rows = await list({ developerId, limit, before })
      return rows.map(({ salt: _salt, hash: _hash, ...token }) => withScopes(token))
    },

    count: (developerId) => rows.count(eq(tokens.developerId, developerId)),

    insert: (token) => rows.insertMissing({ ...token, scopes: token.scopes.join(' ') }),

    markUsed: (id, now, usedUntil) =>
      rows.update(
        { lastUsedAt: now },
        and(eq(tokens.id, id), or(isNull(tokens.lastUsedAt), lte(tokens.lastUsedAt, usedUntil))),
      ),

    async delete(developerId, id) {
      const [deleted] = await rows.take(and(eq(tokens.id, id), eq(tokens.developerId, developerId)))
      if (deleted) onAccessEnded(developerId)
      return deleted?.name
    },

    async deleteByDeveloper(developerId) {
      await rows.delete(eq(tokens.developerId, developerId))
      onAccessEnded(developerId)
    },

    deleteExpired: (developerId, now, name) =>
      rows.delete(
        and(
          eq(tokens.developerId, developerId),
          lte(tokens.expiresAt, now),
          name === undefined ? undefined : eq(tokens.name, name),
        ),
      ),
  }
}

/** Splits the stored scopes; a scope of a later version is dropped. */
const withScopes = <T extends { scopes: string }>({ scopes, ...token }: T) => ({
  ...token,
  scopes: apiTokenScopes.filter((scope) => scopes.split(' ').includes(scope)),
})
