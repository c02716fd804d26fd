import { asc, lte, sql } from 'drizzle-orm'
import type { ListRule } from '../domain/model/list-rule.ts'
import type { ListRuleStore } from '../domain/store/list-rules.ts'
import { andThen } from '../domain/model/awaitable.ts'
import type { Connection } from './engine/connection.ts'
import { onTable, prepareFind } from './engine/on-table.ts'
import { rememberConfiguration } from './remember.ts'

/** Rules of developers by the version of their list, on PostgreSQL. All connections of a node share them. */
export type RuleCache = Map<string, { version: number; rules: readonly ListRule[] }>

/** The cache is cleared when it is full. */
const cachedMax = 1_000
const none: readonly ListRule[] = []

export function createListRuleStore(connection: Connection, cache: RuleCache): ListRuleStore {
  const { database, executor, sealing } = connection
  const { guardRules: table } = database.tables
  const find = prepareFind(connection, table, 'developerId')

  const read = (developerId: string) =>
    andThen(find({ developerId }), (row) => {
      const text = row ? sealing.openText('guard_rules.rules', developerId, row.rules) : null
      // `save` is the only writer.
      const rules = text === null ? none : (JSON.parse(text) as ListRule[])
      return { version: row?.version ?? 0, rules }
    })
  const remembered = rememberConfiguration(connection, (id) => andThen(read(id), ({ rules }) => rules))

  return {
    list: async (developerId) => (await read(developerId)).rules,

    current(developerId, version) {
      if (version === undefined) return remembered(developerId)
      if (version === 0) return none
      const known = cache.get(developerId)
      if (known?.version === version) return known.rules
      return andThen(read(developerId), (found) => {
        if (cache.size >= cachedMax) cache.clear()
        cache.set(developerId, found)
        return found.rules
      })
    },

    async save(developerId, rules) {
      const ends = rules.flatMap(({ expiresAt }) => expiresAt ?? [])
      const row = {
        rules: sealing.sealText('guard_rules.rules', developerId, JSON.stringify(rules)),
        nextExpiryAt: ends.length === 0 ? null : Math.min(...ends),
      }
      await onTable(executor, table).put(
        { developerId, version: 1, ...row },
        { target: table.developerId, set: { ...row, version: sql`${table.version} + 1` } },
      )
      database.sqlite?.configuration.increment()
    },

    async listExpired(now, limit) {
      const rows = await executor
        .select({ developerId: table.developerId })
        .from(table)
        .where(lte(table.nextExpiryAt, now))
        .orderBy(asc(table.nextExpiryAt))
        .limit(limit)
      return rows.map((row) => row.developerId)
    },
  }
}
