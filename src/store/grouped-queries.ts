import { sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { IdempotencyScope } from '../domain/model/idempotency.ts'
import { admissionLifetimeMs, type Admission, type StoredPolicy } from '../domain/model/rate-limit.ts'
import { selectDeveloperColumn, type CallerRow } from './applications.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import type { Sealing } from './engine/sealing.ts'
import { createGroupedGuardQuery } from './guard.ts'
import { idempotencyRow, openAnswer } from './idempotency.ts'
import { toMessage } from './otp-deliveries.ts'
import { toOtpRequest } from './otp-requests.ts'
import { isUnused, openRecord } from './phone-rows.ts'
import { databaseTime } from './transaction-time.ts'
import { parseSubscriber } from './webhook-endpoints.ts'

/** The newest admission of a limiter, and the oldest in the window that ends at the time of the calls. */
export type LimiterHeads = { newest: Admission; oldest: Admission | undefined }

export type GroupedQueries = ReturnType<typeof createGroupedQueries>

/**
 * Creates the queries that read the rows of many calls at once, on PostgreSQL. Those of rows that calls change lock them,
 * in the order of their keys.
 */
export function createGroupedQueries(database: Database, executor: QueryExecutor, sealing: Sealing) {
  const { tables, admissionTable } = database
  const { applications, developers, otpRequests, otpDeliveries, phones, idempotencyKeys } = tables
  const { webhookEndpoints: endpoints, counters, guardRules } = tables
  if (!admissionTable) throw new Error('groups of calls are read on PostgreSQL only')

  const lockApplications = database.prepare(() =>
    executor
      .select({
        id: applications.id,
        status: applications.status,
        credentialsVersion: applications.credentialsVersion,
        otpTtlSeconds: applications.otpTtlSeconds,
        countries: applications.countries,
        developerStatus: sql<
          CallerRow['developerStatus']
        >`${selectDeveloperColumn(tables, developers.status)}`,
        plan: sql<string>`${selectDeveloperColumn(tables, developers.plan)}`,
        rulesVersion: sql<
          number | null
        >`(select ${guardRules.version} from ${guardRules} where ${guardRules.developerId} = ${applications}.developer_id)`,
      })
      .from(applications)
      .where(isAny(applications.id, 'ids'))
      .orderBy(locking(applications.id)),
  )
  const lockRequests = database.prepare(() =>
    executor.select().from(otpRequests).where(isAny(otpRequests.id, 'ids')).orderBy(locking(otpRequests.id)),
  )
  const lockMessages = database.prepare(() =>
    executor
      .select()
      .from(otpDeliveries)
      .where(isAny(otpDeliveries.requestId, 'ids'))
      .orderBy(otpDeliveries.requestId, locking(otpDeliveries.message)),
  )
  const lockPhones = database.prepare(() =>
    executor
      .select()
      .from(phones)
      .where(isAny(phones.phoneHash, 'hashes'))
      .orderBy(locking(phones.phoneHash)),
  )
  const findAnswers = database.prepare(() => {
    const { caller, route, key } = idempotencyKeys
    const scopes = sql`select * from unnest(${texts('callers')}, ${texts('routes')}, ${texts('keys')})`
    return executor
      .select()
      .from(idempotencyKeys)
      .where(sql`(${caller}, ${route}, ${key}) in (${scopes})`)
  })
  const { subject, policy, at, seq } = admissionTable
  /** The first admission of a limiter in an order. */
  const head = (condition: SQL, order: SQL) =>
    sql`(select array[${at}, ${seq}] from ${admissionTable}
      where ${subject} = limiters.subject and ${policy} = limiters.policy${condition}
      order by ${at} ${order}, ${seq} ${order} limit 1)`
  const findHeads = database.prepare(() =>
    executor
      .select({
        subject: sql<string>`limiters.subject`,
        policy: sql<StoredPolicy>`limiters.policy`,
        newest: sql<string[] | null>`${head(sql``, sql`desc`)}`,
        oldest: sql<
          string[] | null
        >`${head(sql` and ${at} > ${currentTime} - ${sql.raw(String(admissionLifetimeMs))}`, sql`asc`)}`,
      })
      .from(sql`unnest(${texts('subjects')}, ${texts('policies')}) as limiters(subject, policy)`),
  )
  const subscribers = (owner: SQLiteColumn) =>
    database.prepare(() =>
      executor
        .select({ owner, id: endpoints.id, events: endpoints.events })
        .from(endpoints)
        .where(isAny(owner, 'ids'))
        .orderBy(endpoints.id),
    )
  const subscribersOfApplications = subscribers(endpoints.appId)
  const subscribersOfDevelopers = subscribers(endpoints.developerId)
  const readTime = database.prepare(() =>
    executor
      .select({ now: sql<string>`${takeTime}` })
      .from(counters)
      .where(sql`${counters.name} = 'event_seq'`),
  )

  return {
    guardRows: createGroupedGuardQuery(database, executor),

    async credentials(ids: readonly string[]): Promise<Map<string, CallerRow>> {
      return new Map((await lockApplications({ ids })).map((row) => [row.id, row]))
    },

    async requests(ids: readonly string[]) {
      return new Map((await lockRequests({ ids })).map((row) => [row.id, toOtpRequest(sealing, row)]))
    },

    /** Messages by request, oldest first. */
    async messages(ids: readonly string[]) {
      return Map.groupBy((await lockMessages({ ids })).map(toMessage), ({ requestId }) => requestId)
    },

    /** Records by hash. A record that is missing cannot be locked: the first of two transactions that add it wins. */
    async phones(hashes: readonly string[]) {
      const rows = await lockPhones({ hashes })
      return new Map(
        rows.map((row) => [
          row.phoneHash,
          { hash: row.phoneHash, row, record: openRecord(sealing, row), isNew: isUnused(row) },
        ]),
      )
    },

    /** Answers by `idempotencyRow`. */
    async answers(scopes: readonly IdempotencyScope[]) {
      const rows = await findAnswers({
        callers: scopes.map(({ caller }) => caller),
        routes: scopes.map(({ route }) => route),
        keys: scopes.map(({ key }) => key),
      })
      return new Map(rows.map((row) => [idempotencyRow(row), openAnswer(sealing, row, row)]))
    },

    /** Heads of limiters, in the order in which they were asked for, at the time that `time` last read. */
    async heads(limiters: ReadonlyArray<{ subject: string; policy: StoredPolicy }>) {
      const rows = await findHeads({
        subjects: limiters.map((limiter) => limiter.subject),
        policies: limiters.map((limiter) => limiter.policy),
      })
      return new Map(
        rows.flatMap((row): Array<[string, LimiterHeads]> => {
          const newest = toAdmission(row.newest)
          return newest
            ? [[limiterKey(row.subject, row.policy), { newest, oldest: toAdmission(row.oldest) }]]
            : []
        }),
      )
    },

    subscribers: async (ids: readonly string[]) => groupByOwner(await subscribersOfApplications({ ids })),
    subscribersOfDevelopers: async (ids: readonly string[]) =>
      groupByOwner(await subscribersOfDevelopers({ ids })),

    /** Reads the time of the database, in milliseconds, and keeps it for `heads` of this transaction. */
    async time(): Promise<number> {
      const [row] = await readTime()
      return Number(row?.now)
    },
  }
}

export const limiterKey = (subject: string, policy: string) => `${policy} ${subject}`

const texts = (name: string) => sql`${sql.placeholder(name)}::text[]`

const isAny = (column: SQLiteColumn, name: string) => sql`${column} = any(${texts(name)})`

/** Ends an `order by`, and locks the rows in that order. */
const locking = (column: SQLiteColumn) => sql`${column} for no key update`

/** A setting of the transaction: statements that are sent together share one time. */
const timeSetting = 'otpd.now'
const takeTime = sql`set_config(${sql.raw(`'${timeSetting}'`)}, ${databaseTime}::text, true)`
const currentTime = sql.raw(`current_setting('${timeSetting}')::bigint`)

/** The driver returns 64-bit integers as text. */
const toAdmission = (head: readonly string[] | null): Admission | undefined =>
  head === null ? undefined : { at: Number(head[0]), seq: Number(head[1]) }

const groupByOwner = (rows: ReadonlyArray<{ owner: unknown; id: string; events: string }>) => {
  const byOwner = new Map<string, Array<ReturnType<typeof parseSubscriber>>>()
  for (const row of rows) {
    const owner = String(row.owner)
    const list = byOwner.get(owner) ?? []
    byOwner.set(owner, list)
    list.push(parseSubscriber(row))
  }
  return byOwner
}
