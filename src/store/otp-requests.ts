import { and, asc, desc, eq, gt, gte, isNull, lt, lte, ne, or, sql, type InferSelectModel } from 'drizzle-orm'
import {
  attemptsMax,
  resendAfterMs,
  resendsMax,
  type Channel,
  type OtpListQuery,
  type OtpRequest,
  type OtpRequestStore,
  type OtpStatus,
} from '../domain/model/request.ts'
import { atMost } from './engine/typed-placeholders.ts'
import type { Builders, Database } from './engine/database.ts'
import { deleteOldestInOrder } from './engine/delete-oldest.ts'
import { isOwnedBy, shortOwner, type ShortOwner } from './engine/owner.ts'
import { prepareFiltered, type Given } from './engine/prepare-filtered.ts'
import type { Tables } from './engine/tables.ts'

type Row = InferSelectModel<Tables['otpRequests']>

/** Metadata is JSON text, and channel one of the known words, because `insert` below wrote them so. */
export const toOtpRequest = (row: Row): OtpRequest => ({
  ...row,
  channel: row.channel as Channel,
  metadata: row.metadata === null ? null : (JSON.parse(row.metadata) as Record<string, string>),
})

type ListFilter = Omit<OtpListQuery, 'developerId' | 'appId' | 'status' | 'now'> & StatusFilter & ShortOwner

/** At most one of them. */
type StatusFilter = { status?: OtpStatus; pendingAt?: number; expiredAt?: number }

/** As `isDue` has it. */
function hasStatus(status: OtpStatus | undefined, now: number): StatusFilter {
  if (status === 'pending') return { pendingAt: now }
  if (status === 'expired') return { expiredAt: now }
  return status === undefined ? {} : { status }
}

export function createOtpRequestStore(database: Database, on: Builders): OtpRequestStore {
  const { otpRequests: otp } = database.tables
  const p = sql.placeholder
  const pending = and(eq(otp.id, p('id')), eq(otp.status, 'pending'))

  const find = database.prepare(() =>
    on
      .select()
      .from(otp)
      .where(eq(otp.id, p('id'))),
  )
  const insert = database.prepare(() =>
    on.insert(otp).values({
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
      updatedAt: p('updatedAt'),
    }),
  )
  const attempt = { attempts: sql`${otp.attempts} + 1`, updatedAt: sql`${p('now')}` }
  const mayBeTried = and(pending, lt(otp.attempts, attemptsMax), gt(otp.expiresAt, p('now')))
  // Whoever counts an attempt has read the request: what stays is not read again.
  const counted = {
    status: otp.status,
    attempts: otp.attempts,
    verifiedAt: otp.verifiedAt,
    updatedAt: otp.updatedAt,
    // Written by insert and countResend from a Channel.
    channel: sql<Channel>`${otp.channel}`,
  }
  const fail = database.prepare(() => on.update(otp).set(attempt).where(mayBeTried).returning(counted))
  const verify = database.prepare(() =>
    on
      .update(otp)
      .set({ ...attempt, status: 'verified', verifiedAt: sql`${p('now')}` })
      .where(mayBeTried)
      .returning(counted),
  )
  const end = database.prepare(() =>
    on
      .update(otp)
      .set({
        status: sql`${p('status')}`,
        failureReason: sql`${p('failureReason')}`,
        updatedAt: sql`${p('now')}`,
      })
      .where(pending)
      .returning(),
  )
  const list = prepareFiltered(
    database,
    ({ status, pendingAt, expiredAt, limit, before, from, ...owner }: Given<ListFilter>) => {
      const isPending = sql`${otp.status} = 'pending'`
      return on
        .select()
        .from(otp)
        .where(
          and(
            isOwnedBy(otp, owner),
            status && eq(otp.status, status),
            pendingAt && and(isPending, gt(otp.expiresAt, pendingAt)),
            expiredAt && or(sql`${otp.status} = 'expired'`, and(isPending, lte(otp.expiresAt, expiredAt))),
            before && lt(otp.id, before),
            from && gte(otp.id, from),
          ),
        )
        .orderBy(atMost(desc(otp.id), limit))
    },
  )
  const first = (rows: Row[]) => (rows[0] ? toOtpRequest(rows[0]) : undefined)

  return {
    find: async (id) => first(await find({ id })),

    async list({ status, now, developerId, appId, ...query }) {
      const owner = shortOwner(database, { developerId, appId })
      const rows = await list({ ...query, ...owner, ...hasStatus(status, now) })
      return rows.map(toOtpRequest)
    },

    async listDue(now, limit) {
      const rows = await on
        .select()
        .from(otp)
        // Spelled out: SQLite uses the index of pending requests only where it sees the word itself.
        .where(and(sql`${otp.status} = 'pending'`, lte(otp.expiresAt, now)))
        .orderBy(asc(otp.expiresAt))
        .limit(limit)
      return rows.map(toOtpRequest)
    },

    async insert(request) {
      const { metadata } = request
      await insert({ ...request, metadata: metadata === null ? null : JSON.stringify(metadata) })
    },

    async countAttempt(id, isRight, now) {
      const [attempted] = await (isRight ? verify : fail)({ id, now })
      return attempted
    },

    async countResend(id, by, now) {
      const rows = await on
        .update(otp)
        .set({ resends: sql`${otp.resends} + 1`, ...by, sentAt: now, updatedAt: now })
        .where(
          and(
            eq(otp.id, id),
            eq(otp.status, 'pending'),
            lt(otp.resends, resendsMax),
            lte(otp.sentAt, now - resendAfterMs),
            gt(otp.expiresAt, now),
          ),
        )
        .returning()
      return first(rows)
    },

    async setDelivery({ requestId, message }, { deliveryStatus, way }, now) {
      const rows = await on
        .update(otp)
        .set({ deliveryStatus, ...way, updatedAt: now })
        .where(
          and(
            eq(otp.id, requestId),
            deliveryStatus === 'delivered' ? undefined : eq(otp.resends, message),
            or(isNull(otp.deliveryStatus), ne(otp.deliveryStatus, 'delivered')),
          ),
        )
        .returning()
      return first(rows)
    },

    async end(id, how, now) {
      const failureReason = how.status === 'failed' ? how.failureReason : null
      return first(await end({ id, now, status: how.status, failureReason }))
    },

    deleteOldest: (until, chunk) => deleteOldestInOrder(on, otp, otp.id, otp.createdAt, until, chunk),
  }
}
