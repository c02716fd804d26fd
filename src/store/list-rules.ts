import { asc, lte, sql } from 'drizzle-orm'
import type { ListRule } from '../domain/model/list-rule.ts'
import type { ListRuleStore } from '../domain/store/list-rules.ts'
import type { Connection } from './engine/connection.ts'
import { onTable, prepareFind } from './engine/on-table.ts'
import type { Sealing } from './engine/sealing.ts'

/** Rules of developers by the version of their list, on PostgreSQL. All connections of a node share them. */
export type RuleCache = Map<string, { version: number; rules: readonly ListRule[] }>

/** The cache is cleared when it is full. */
const cachedMax = 1_000
const none: readonly ListRule[] = []

/** Decrypts the rules of a developer. @param row undefined: there are none */
export function openRules(
  sealing: Sealing,
  developerId: string,
  row: { rules: string } | undefined,
): readonly ListRule[] {
  const text = row ? sealing.openText('guard_rules.rules', developerId, row.rules) : null
  // `save` is the only writer.
  return text === null ? none : (JSON.parse(text) as ListRule[])
}

/** Creates the look-up of rules whose version the caller has read, on PostgreSQL: from memory if they are there. */
export function createRuleLookup(connection: Connection, cache: RuleCache) {
  const { database, sealing } = connection
  const find = prepareFind(connection, database.tables.guardRules, 'developerId')
  return async (developerId: string, version: number): Promise<readonly ListRule[]> => {
    if (version === 0) return none
    const known = cache.get(developerId)
    if (known?.version === version) return known.rules
    const row = await find({ developerId })
    const found = { version: row?.version ?? 0, rules: openRules(sealing, developerId, row) }
    if (cache.size >= cachedMax) cache.clear()
    cache.set(developerId, found)
    return found.rules
  }
}

export function createListRuleStore(connection: Connection): ListRuleStore {
  const { database, executor, sealing } = connection
  const { guardRules: table } = database.tables
  const find = prepareFind(connection, table, 'developerId')

  return {
    list: async (developerId) => openRules(sealing, developerId, await find({ developerId })),

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
