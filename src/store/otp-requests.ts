import { and, asc, desc, eq, gt, gte, lt, lte, or, sql, type InferSelectModel } from 'drizzle-orm'
import type { Channel, OtpRequest, OtpStatus } from '../domain/model/request.ts'
import type { Sealing } from './engine/sealing.ts'
import type { OtpListQuery, OtpRequestStore } from '../domain/store/otp-requests.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import { isOwnedBy, ownerShortId, type OwnerShortId } from './ownership.ts'
import type { Tables } from './engine/tables.ts'

type Row = InferSelectModel<Tables['otpRequests']>

/**
 * Decrypts a row. The address and the metadata are null if they cannot be decrypted. The assertions hold because
 * `insert` below is the only writer of metadata and channel.
 */
export function toOtpRequest(sealing: Sealing, row: Row): OtpRequest {
  const { id } = row
  const metadata = sealing.openText('otp_requests.metadata', id, row.metadata)
  return {
    ...row,
    phone: sealing.openPhone('otp_requests.phone', id, row.phone),
    clientIp: sealing.openText('otp_requests.client_ip', id, row.clientIp),
    contexts: row.contexts === null ? [] : row.contexts.split(' '),
    channel: row.channel as Channel,
    metadata: metadata === null ? null : (JSON.parse(metadata) as Record<string, string>),
  }
}

type ListFilter = Omit<OtpListQuery, 'developerId' | 'appId' | 'status' | 'now'> & StatusFilter & OwnerShortId

/** At most one property is set. */
type StatusFilter = { status?: OtpStatus; pendingAt?: number; expiredAt?: number }

/** Pending requests past their expiry are listed as expired, as `isExpired` defines. */
function toStatusFilter(status: OtpStatus | undefined, now: number): StatusFilter {
  if (status === 'pending') return { pendingAt: now }
  if (status === 'expired') return { expiredAt: now }
  return status === undefined ? {} : { status }
}

/** Stores OTP requests. */
export function createOtpRequestStore(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
): OtpRequestStore {
  const { otpRequests: otp } = database.tables
  const p = sql.placeholder

  const find = database.prepare(() =>
    executor
      .select()
      .from(otp)
      .where(eq(otp.id, p('id'))),
  )
  const findPrevious = database.prepare(() =>
    executor
      .select({ previousRequest: otp.previousRequest })
      .from(otp)
      .where(eq(otp.id, p('id'))),
  )
  const insert = database.prepare(() =>
    executor.insert(otp).values({
      id: p('id'),
      developerId: p('developerId'),
      projectId: p('projectId'),
      appId: p('appId'),
      environment: p('environment'),
      phone: p('phone'),
      country: p('country'),
      status: p('status'),
      failureReason: p('failureReason'),
      channel: p('channel'),
      provider: p('provider'),
      deliveryStatus: p('deliveryStatus'),
      locale: p('locale'),
      clientIp: p('clientIp'),
      metadata: p('metadata'),
      codeSalt: p('codeSalt'),
      codeHash: p('codeHash'),
      createdAt: p('createdAt'),
      sentAt: p('sentAt'),
      expiresAt: p('expiresAt'),
      previousRequest: p('previousRequest'),
      lane: p('lane'),
      contexts: p('contexts'),
      updatedAt: p('updatedAt'),
    }),
  )
  const update = database.prepare(() =>
    executor
      .update(otp)
      .set({
        status: sql`${p('status')}`,
        failureReason: sql`${p('failureReason')}`,
        channel: sql`${p('channel')}`,
        provider: sql`${p('provider')}`,
        deliveryStatus: sql`${p('deliveryStatus')}`,
        attempts: sql`${p('attempts')}`,
        resends: sql`${p('resends')}`,
        sentAt: sql`${p('sentAt')}`,
        verifiedAt: sql`${p('verifiedAt')}`,
        updatedAt: sql`${p('updatedAt')}`,
      })
      .where(eq(otp.id, p('id'))),
  )
  const list = prepareFiltered(
    database,
    ({ status, pendingAt, expiredAt, limit, before, from, ...owner }: FilterPlaceholders<ListFilter>) => {
      const isPending = sql`${otp.status} = 'pending'`
      return executor
        .select()
        .from(otp)
        .where(
          and(
            isOwnedBy(otp, owner),
            status && eq(otp.status, status),
            pendingAt && and(isPending, gt(otp.expiresAt, pendingAt)),
            expiredAt && or(sql`${otp.status} = 'expired'`, and(isPending, lte(otp.expiresAt, expiredAt))),
            // Keyset pagination: only rows older than the last page's.
            before && lt(otp.id, before),
            from && gte(otp.id, from),
          ),
        )
        .orderBy(orderByLimit(desc(otp.id), limit))
    },
  )
  const toRequest = (row: Row) => toOtpRequest(sealing, row)
  const toFirstRequest = (rows: Row[]) => (rows[0] ? toRequest(rows[0]) : undefined)

  return {
    find: async (id) => toFirstRequest(await find({ id })),

    async lock(id) {
      await database.lock(executor, otp, otp.id, id)
      return toFirstRequest(await find({ id }))
    },

    async list({ status, now, developerId, appId, ...query }) {
      const owner = ownerShortId(database, { developerId, appId })
      const rows = await list({ ...query, ...owner, ...toStatusFilter(status, now) })
      return rows.map(toRequest)
    },

    async listExpired(now, limit) {
      const rows = await executor
        .select()
        .from(otp)
        // A literal: SQLite uses the partial index of pending requests only if it sees the same text.
        .where(and(sql`${otp.status} = 'pending'`, lte(otp.expiresAt, now)))
        .orderBy(asc(otp.expiresAt))
        .limit(limit)
      return rows.map(toRequest)
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

    async insert(request) {
      const { id, phone, clientIp, metadata, contexts } = request
      const metadataText = metadata === null ? null : JSON.stringify(metadata)
      await insert({
        ...request,
        phone: sealing.sealPhone('otp_requests.phone', id, phone),
        clientIp: sealing.sealText('otp_requests.client_ip', id, clientIp),
        metadata: sealing.sealText('otp_requests.metadata', id, metadataText),
        contexts: contexts.length === 0 ? null : contexts.join(' '),
      })
    },

    async findPrevious(id) {
      return (await findPrevious({ id }))[0]?.previousRequest ?? undefined
    },

    async cutPrevious(id) {
      await executor.update(otp).set({ previousRequest: null }).where(eq(otp.id, id))
    },

    async update(request) {
      await update({ ...request })
    },

    deleteOldest: (until, batchSize) =>
      deleteOldestByKey(executor, otp, otp.id, otp.createdAt, until, batchSize),
  }
}
