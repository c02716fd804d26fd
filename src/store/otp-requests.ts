import { and, asc, eq, gt, gte, lt, lte, min, or, sql, type SQL } from 'drizzle-orm'
import type { OtpRequest, OtpStatus } from '../domain/model/request.ts'
import type { OtpListQuery, OtpRequestStore } from '../domain/store/otp-requests.ts'
import {
  type FilterPlaceholders,
  inJson,
  integerParam,
  orderByLimit,
  prepareFiltered,
} from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import { prepareFind } from './engine/on-table.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import { inOrder, loadListed } from './list-reads.ts'
import { requestsLists, statusLists } from './sqlite/list-numbers.ts'
import { addToList, moveToList, removeFromList } from './list-changes.ts'
import { createListSources } from './list-reads.ts'
import type { Environment } from '../domain/model/application.ts'
import { createEnvironmentLookup } from './app-environments.ts'
import { onlyOwn, ownerShortId, pageOf, type OwnerShortId } from './ownership.ts'
import {
  createRequestWrites,
  listedColumns,
  toListedRequest,
  toOtpRequest,
  type ListedRow,
  type RequestRow,
} from './otp-request-rows.ts'
import { createRequestLinks, isInPhoneList } from './request-links.ts'

type PageFilter = OwnerShortId & {
  environment: Environment | undefined
  status: OtpStatus | undefined
  /** Only requests that expire after this time. */
  pendingAt: number | undefined
  before: string | undefined
  limit: number
}
type OverdueFilter = Omit<PageFilter, 'status' | 'pendingAt'> & { now: number }
type IdsFilter = Pick<PageFilter, 'status' | 'pendingAt'> & { ids: string }

/** Stores OTP requests. */
export function createOtpRequestStore(connection: Connection): OtpRequestStore {
  const { database, executor, sealing } = connection
  const { otpRequests: otp } = database.tables
  const listed = listedColumns(database.tables)

  const find = prepareFind(connection, otp, 'id')
  const writes = createRequestWrites(database.tables, sealing)
  const writeNew = database.writeRows(executor, writes.insert)
  const writeChanged = database.writeRows(executor, writes.update)
  const listBack = prepareFiltered(
    database,
    ({ from, limit }: FilterPlaceholders<{ from: string; limit: number }>) =>
      executor
        .select()
        .from(otp)
        .where(isInPhoneList(database.tables, eq(otp.id, from), limit)),
  )
  const matches = ({ status, pendingAt }: { status: SQL | undefined; pendingAt: SQL | undefined }) =>
    and(status && eq(otp.status, status), pendingAt && gt(otp.expiresAt, pendingAt))
  // PostgreSQL
  const listPage = prepareFiltered(
    database,
    ({ before, limit, status, pendingAt, ...owner }: FilterPlaceholders<PageFilter>) => {
      const isListed = and(matches({ status, pendingAt }), before && lt(otp.id, before))
      const rows = { table: otp, key: otp.id }
      const { condition, order } = pageOf(connection, rows, owner, isListed, { limit })
      return executor.select(listed).from(otp).where(condition).orderBy(order)
    },
  )
  // SQLite
  const listIds = prepareFiltered(database, ({ ids, ...filter }: FilterPlaceholders<IdsFilter>) =>
    executor
      .select(listed)
      .from(otp)
      .where(and(inJson(otp.id, ids), matches(filter))),
  )
  // Few, because they are closed within seconds. `nullif` keeps the databases from choosing another index.
  const listOverdue = prepareFiltered(
    database,
    ({ now, before, limit, developerId, appId, environment }: FilterPlaceholders<OverdueFilter>) =>
      executor
        .select(listed)
        .from(otp)
        .where(
          and(
            sql`${otp.status} = 'pending'`,
            lte(otp.expiresAt, now),
            sql`nullif(${otp.developerId}, null) = ${developerId}`,
            appId && sql`nullif(${otp.appId}, null) = ${appId}`,
            environment && eq(otp.environment, environment),
            before && sql`nullif(${otp.id}, null) < ${before}`,
          ),
        )
        .orderBy(orderByLimit(sql`nullif(${otp.id}, null) desc`, limit)),
  )

  const findExpired = database.prepare(() =>
    executor
      .select()
      .from(otp)
      // A literal: SQLite uses the partial index of pending requests only if it sees the same text.
      .where(and(sql`${otp.status} = 'pending'`, lte(otp.expiresAt, sql.placeholder('now'))))
      .orderBy(orderByLimit(asc(otp.expiresAt), integerParam('limit'))),
  )
  const findNextExpiry = database.prepare(() =>
    executor
      .select({ at: min(otp.expiresAt) })
      .from(otp)
      .where(sql`${otp.status} = 'pending'`),
  )

  const findEnvironment = createEnvironmentLookup(connection)
  const findSources = createListSources(connection, { developer: requestsLists, application: statusLists })
  /** Changes the lists which have a request: that of its developer, and that of its application and its status. */
  function changeRequestLists(
    change: typeof addToList,
    row: Pick<OtpRequest, 'id' | 'developerId' | 'appId' | 'environment' | 'status'>,
  ) {
    change(database, requestsLists[row.environment], row.developerId, row.id)
    change(database, statusLists[row.status], row.appId, row.id)
  }
  async function listByStatus({ status, now, limit, before, environment, ...owner }: OtpListQuery) {
    const filter = { status, pendingAt: status === 'pending' ? now : undefined }
    const lists = database.sqlite?.lists
    if (!lists || !findSources) {
      const { appId } = owner
      if (appId !== undefined && environment !== undefined && (await findEnvironment(appId)) !== environment)
        return []
      const shortIds = ownerShortId(database, owner)
      return onlyOwn(await listPage({ ...filter, ...shortIds, environment, before, limit }), owner) ?? []
    }
    const sources = findSources({ ...owner, environment }, status && [statusLists[status]])
    return loadListed(lists, sources, { before }, limit, async (ids: string[]) => {
      const rows = await listIds({ ...filter, ids: JSON.stringify(ids) })
      return onlyOwn(rows, owner) && inOrder(ids, rows, ({ id }) => id)
    })
  }

  const toListed = (row: ListedRow) => toListedRequest(sealing, row)
  const toRequest = (row: RequestRow) => toOtpRequest(sealing, row)
  async function findRequest(id: string) {
    const row = await find({ id })
    return row && toRequest(row)
  }

  return {
    find: findRequest,

    async lock(id) {
      await database.lock(executor, otp, otp.id, id)
      return findRequest(id)
    },

    async list(query) {
      if (query.status !== 'expired') return (await listByStatus(query)).map(toListed)
      // Pending requests past their expiry are listed as expired, as `isExpired` defines. They are read first: one that is
      // closed before the second query is found by both.
      const { now, before, limit, environment } = query
      const overdue = await listOverdue({
        ...ownerShortId(database, query),
        environment,
        now,
        before,
        limit,
      })
      const rows = [...(onlyOwn(overdue, query) ?? []), ...(await listByStatus(query))]
      const byId = new Map(rows.map((row) => [row.id, row]))
      const newestFirst = [...byId.values()].toSorted((a, b) => (a.id < b.id ? 1 : -1))
      return newestFirst.slice(0, limit).map(toListed)
    },

    async nextExpiryAt() {
      const [row] = await findNextExpiry()
      return row?.at ?? undefined
    },

    async listExpired(now, limit) {
      return (await findExpired({ now, limit })).map(toRequest)
    },

    async listPending({ expiresAt, id }, limit) {
      const isLater = or(gt(otp.expiresAt, expiresAt), and(eq(otp.expiresAt, expiresAt), gt(otp.id, id)))
      const rows = await executor
        .select()
        .from(otp)
        // A literal, and the range apart: SQLite finds the place in the index of pending requests.
        .where(and(sql`${otp.status} = 'pending'`, gte(otp.expiresAt, expiresAt), isLater))
        .orderBy(asc(otp.expiresAt), asc(otp.id))
        .limit(limit)
      return rows.map(toRequest)
    },

    ...createRequestLinks(connection),

    insert(requests) {
      for (const request of requests) changeRequestLists(addToList, request)
      writeNew(requests)
    },

    async listBack(from, limit) {
      const rows = await listBack({ from, limit })
      const byId = new Map(rows.map((row) => [row.id, row]))
      const found: OtpRequest[] = []
      for (let row = byId.get(from); row; row = byId.get(row.previousRequest ?? ''))
        found.push(toRequest(row))
      return found
    },

    update(changes) {
      for (const { request, statusBefore = 'pending' } of changes) {
        const { id, status, appId } = request
        if (status === statusBefore) continue
        // Only a pending request changes its status.
        moveToList(database, { from: statusLists.pending, to: statusLists[status] }, appId, id)
      }
      writeChanged(changes.map(({ request }) => request))
    },

    async deleteOldest(until, batchSize) {
      if (await database.postgres?.partitions.dropOldest(executor, 'otp_requests', until)) return true
      const { id, status, environment, developerId, appId, createdAt: at } = otp
      const returned = { id, status, environment, developerId, appId }
      const deleted = await deleteOldestByKey(executor, { key: id, at }, { until, batchSize }, returned)
      for (const row of deleted) changeRequestLists(removeFromList, row)
      return deleted.length > 0
    },
  }
}
