import { sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { IdempotencyScope } from '../domain/model/idempotency.ts'
import type { RateLimit, StoredPolicy } from '../domain/model/rate-limit.ts'
import { messageSettings, developerColumns, type CallerRow } from './applications.ts'
import { isInPhoneList } from './request-links.ts'
import { selectAnyBudget } from './check-budgets.ts'
import type { Connection } from './engine/connection.ts'
import type { Preparable } from './engine/database.ts'
import { idempotencyRow, openAnswer } from './idempotency.ts'
import { createRuleLookup, type RuleCache } from './list-rules.ts'
import { toMessage } from './messages.ts'
import { toOtpRequest } from './otp-request-rows.ts'
import { toSession } from './otp-sessions.ts'
import { toLoadedPhone } from './phone-rows.ts'
import { toRelayedMessage } from './relayed-messages.ts'
import { createUsageQuery } from './rate-limits.ts'
import { readLoadTime } from './transaction-time.ts'
import { parseSubscriber } from './webhook-endpoints.ts'

export type LoadQueries = ReturnType<typeof createLoadQueries>

/**
 * Creates the queries that read the rows of many calls at once, on PostgreSQL. Those of rows that calls change lock them,
 * in the order of their keys.
 */
export function createLoadQueries(connection: Connection, ruleCache: RuleCache) {
  const { database, executor, sealing } = connection
  const { tables, postgres } = database
  const { applications, developers, otpRequests, messages, phones, idempotencyKeys } = tables
  const { webhookEndpoints: endpoints, counters, guardRules, relayedMessages, otpSessions } = tables
  if (!postgres) throw new Error('groups of calls are read on PostgreSQL only')

  /** Prepares the look-up of rows by keys. @param toEntry returns the key of a row, and what it has */
  function lookUp<Row, V>(select: () => Preparable<Row[]>, toEntry: (row: Row) => readonly [string, V]) {
    const query = database.prepare(select)
    return async (keys: readonly string[]) => new Map((await query({ keys })).map(toEntry))
  }
  const toRequest = (row: typeof otpRequests.$inferSelect) => [row.id, toOtpRequest(sealing, row)] as const
  const toPhone = (row: typeof phones.$inferSelect) => [row.phoneHash, toLoadedPhone(sealing, row)] as const
  const selectPhones = () => executor.select().from(phones).where(isAny(phones.phoneHash))

  const findLists = database.prepare(() => {
    const count = sql`${sql.placeholder('count')}::int`
    const isListed = isInPhoneList(database.tables, isAny(otpRequests.id), count)
    return executor.select().from(otpRequests).where(isListed)
  })
  const lockMessages = database.prepare(() =>
    executor
      .select()
      .from(messages)
      .where(isAny(messages.requestId))
      .orderBy(messages.requestId, locking(messages.messageNumber)),
  )
  const findAnswers = database.prepare(() => {
    const { caller, route, key } = idempotencyKeys
    const scopes = sql`select * from unnest(${texts('callers')}, ${texts('routes')}, ${texts('keys')})`
    return executor
      .select()
      .from(idempotencyKeys)
      .where(sql`(${caller}, ${route}, ${key}) in (${scopes})`)
  })
  const readUsages = createUsageQuery(connection, postgres.admissionTable)
  function subscribersOf(owner: SQLiteColumn) {
    const query = database.prepare(() =>
      executor
        .select({ owner, id: endpoints.id, events: endpoints.events })
        .from(endpoints)
        .where(isAny(owner))
        .orderBy(endpoints.id),
    )
    return async (keys: readonly string[]) => groupByOwner(await query({ keys }))
  }
  const readTime = database.prepare(() =>
    executor
      .select({ now: sql<string>`${readLoadTime}` })
      .from(counters)
      .where(sql`${counters.name} = 'event_seq'`),
  )
  const findAnyBudget = database.prepare(() => selectAnyBudget(connection))

  return {
    credentials: lookUp(
      () =>
        executor
          .select({
            id: applications.id,
            status: applications.status,
            credentialsVersion: applications.credentialsVersion,
            otpTtlSeconds: applications.otpTtlSeconds,
            countries: applications.countries,
            ...messageSettings(applications),
            ...developerColumns(tables),
            rulesVersion: sql<
              number | null
            >`(select ${guardRules.version} from ${guardRules} where ${guardRules.developerId} = ${applications}.developer_id)`,
          })
          .from(applications)
          .where(isAny(applications.id))
          .orderBy(locking(applications.id)),
      (row): [string, CallerRow] => [row.id, row],
    ),

    sessions: lookUp(
      () => executor.select().from(otpSessions).where(isAny(otpSessions.id)).orderBy(locking(otpSessions.id)),
      (row) => [row.id, toSession(sealing, row)],
    ),

    requests: lookUp(
      () => executor.select().from(otpRequests).where(isAny(otpRequests.id)).orderBy(locking(otpRequests.id)),
      toRequest,
    ),
    /** Also reads the requests before each of them in the list of its phone. @param count of each list */
    requestsWithoutLock: async (keys: readonly string[], count: number) =>
      new Map((await findLists({ keys, count })).map(toRequest)),

    relayed: lookUp(
      () =>
        executor
          .select()
          .from(relayedMessages)
          .where(isAny(relayedMessages.id))
          .orderBy(locking(relayedMessages.id)),
      (row) => [row.id, toRelayedMessage(sealing, row)],
    ),

    /** Messages by request, oldest first. */
    messages: async (keys: readonly string[]) =>
      Map.groupBy((await lockMessages({ keys })).map(toMessage), ({ requestId }) => requestId),

    /** Records by hash. A record that is missing cannot be locked: the first of two transactions that add it wins. */
    phones: lookUp(() => selectPhones().orderBy(locking(phones.phoneHash)), toPhone),
    phonesWithoutLock: lookUp(selectPhones, toPhone),

    /** Answers by `idempotencyRow`. */
    async answers(scopes: readonly IdempotencyScope[]) {
      const rows = await findAnswers({
        callers: scopes.map(({ caller }) => caller),
        routes: scopes.map(({ route }) => route),
        keys: scopes.map(({ key }) => key),
      })
      return new Map(rows.map((row) => [idempotencyRow(row), openAnswer(sealing, row, row)]))
    },

    /** Usages of limits by `limitKey`. @param now undefined: the time that `time` last read */
    async usages(limits: ReadonlyArray<RateLimit<StoredPolicy>>, now: number | undefined) {
      const usages = await readUsages(limits, now ?? null)
      return new Map(usages.map((usage, index) => [limitKey(limits[index] as RateLimit), usage]))
    },

    subscribers: subscribersOf(endpoints.appId),
    subscribersOfDevelopers: subscribersOf(endpoints.developerId),

    /** Returns the rules of a developer. @param version of them, as their row has it now */
    rules: createRuleLookup(connection, ruleCache),

    /** Ids of developers by their virtual numbers. */
    virtualPhoneOwners: lookUp(
      () => executor.select().from(developers).where(isAny(developers.virtualPhone)),
      ({ virtualPhone, id }) => [virtualPhone, id],
    ),

    /** Tells whether a budget of 0.1.0 is left. */
    hasOldBudgets: async () => (await findAnyBudget()).length > 0,

    /** Reads the time of the database, in milliseconds, and keeps it for the usages of this transaction. */
    async time(): Promise<number> {
      const [row] = await readTime()
      return Number(row?.now)
    },
  }
}

export const limiterKey = ({ subject, policy }: { subject: string; policy: string }) => `${policy} ${subject}`

/** One limiter may be measured by two limits, if the plan changed a moment ago. */
export const limitKey = (limit: RateLimit) => `${limiterKey(limit)} ${limit.limit}`

const texts = (name: string) => sql`${sql.placeholder(name)}::text[]`

const isAny = (column: SQLiteColumn) => sql`${column} = any(${texts('keys')})`

/** Ends an `order by`, and locks the rows in that order. */
const locking = (column: SQLiteColumn) => sql`${column} for no key update`

const groupByOwner = (rows: ReadonlyArray<{ owner: unknown; id: string; events: string }>) =>
  new Map(
    [...Map.groupBy(rows, ({ owner }) => String(owner))].map(([owner, own]) => [
      owner,
      own.map(parseSubscriber),
    ]),
  )
