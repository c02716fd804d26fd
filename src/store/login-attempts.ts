import { and, asc, desc, eq, gt, inArray, lt, max, notInArray, sql } from 'drizzle-orm'
import type { LoginAttemptStore } from '../domain/store/login-attempts.ts'
import type { Connection } from './engine/connection.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'
import { onTable } from './engine/on-table.ts'

export function createLoginAttemptStore({ database, executor }: Connection): LoginAttemptStore {
  const { loginFailures: failures, loginCounters: counters, loginNetworks: networks } = database.tables
  const rows = onTable(executor, failures)
  const counted = onTable(executor, counters)
  const known = onTable(executor, networks)
  const isPair = (network: string, account: string) =>
    and(eq(failures.network, network), eq(failures.account, account))

  return {
    list: (network, account) => rows.list(isPair(network, account), asc(failures.seq)),

    async listAccounts(network, since) {
      const latest = await executor
        .select({ account: failures.account, at: max(failures.at) })
        .from(failures)
        .where(and(eq(failures.network, network), gt(failures.at, since)))
        .groupBy(failures.account)
      return latest
        .map(({ account, at }) => ({ account, at: Number(at) }))
        .toSorted((one, other) => other.at - one.at)
    },

    insert: (network, account, attempt) => rows.insert({ network, account, ...attempt }),
    delete: (network, account, seq) => rows.delete(and(isPair(network, account), eq(failures.seq, seq))),

    deleteByAccount: (account) => rows.delete(eq(failures.account, account)),

    countedFailures: async (subject) => (await counted.find(eq(counters.subject, subject)))?.failures ?? 0,

    async count(subject, now) {
      const counter = await counted.put(
        { subject, failures: 1, at: now },
        { target: counters.subject, set: { failures: sql`${counters.failures} + 1`, at: now } },
      )
      return counter?.failures ?? 1
    },

    uncount: (subject) =>
      counted.update(
        { failures: sql`${counters.failures} - 1` },
        and(eq(counters.subject, subject), gt(counters.failures, 0)),
      ),
    forget: (subject) => counted.delete(eq(counters.subject, subject)),
    touch: (subject, now) => counted.update({ at: now }, eq(counters.subject, subject)),

    async isKnownNetwork(developerId, hashes) {
      const isKnown = and(eq(networks.developerId, developerId), inArray(networks.network, [...hashes]))
      return (await known.find(isKnown)) !== undefined
    },

    async addNetwork(developerId, network, now, networksMax) {
      const target = [networks.developerId, networks.network]
      await known.put({ developerId, network, at: now }, { target, set: { at: now } })
      const isOwn = eq(networks.developerId, developerId)
      const latest = executor
        .select({ network: networks.network })
        .from(networks)
        .where(isOwn)
        .orderBy(desc(networks.at), desc(networks.network))
        .limit(networksMax)
      await known.delete(and(isOwn, lt(networks.at, now), notInArray(networks.network, latest)))
    },

    async deleteOldest(until, batchSize) {
      const [tooMany] = await executor
        .select({ at: counters.at })
        .from(counters)
        .orderBy(desc(counters.at))
        .limit(1)
        .offset(until.countersMax)
      const counterCutoff = Math.max(until.counters, tooMany?.at ?? 0)
      const results = [
        await deleteOldestByTime(executor, failures.at, { until: until.failures, batchSize }),
        await deleteOldestByTime(executor, counters.at, { until: counterCutoff, batchSize }),
      ]
      return results.includes(true)
    },
  }
}
