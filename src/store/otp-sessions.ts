import { asc, eq, gt, inArray, sql, type InferSelectModel } from 'drizzle-orm'
import { andThen } from '../domain/model/awaitable.ts'
import type { OtpSession } from '../domain/model/session.ts'
import type { OtpSessionStore } from '../domain/store/otp-sessions.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { areOldestByKey } from './engine/delete-oldest.ts'
import type { Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'

const detailsColumn = 'otp_sessions.details'

type Row = InferSelectModel<Tables['otpSessions']>

/** Fields of the creation, sealed as one JSON text. */
type Details = Pick<OtpSession, 'returnUrl' | 'state' | 'phone' | 'locale' | 'template' | 'variables'>

/** @returns undefined if its details cannot be decrypted: without `returnUrl` a session is of no use */
export function toSession(sealing: Sealing, { details, ...row }: Row): OtpSession | undefined {
  const opened = sealing.openText(detailsColumn, row.id, details)
  // Written by `insert`.
  return opened === null ? undefined : { ...row, ...(JSON.parse(opened) as Details) }
}

/** Stores sessions of the ready page. */
export function createOtpSessionStore(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
): OtpSessionStore {
  const { otpSessions: sessions } = database.tables
  const find = database.prepare(() =>
    executor
      .select()
      .from(sessions)
      .where(eq(sessions.id, sql.placeholder('id'))),
  )

  return {
    async insert({ returnUrl, state, phone, locale, template, variables, ...row }) {
      const details: Details = { returnUrl, state, phone, locale, template, variables }
      const sealed = sealing.sealText(detailsColumn, row.id, JSON.stringify(details))
      await executor.insert(sessions).values({ ...row, details: sealed })
    },

    find: (id) => andThen(find({ id }), ([row]) => row && toSession(sealing, row)),

    async findByToken(tokenHash) {
      const [row] = await executor.select().from(sessions).where(eq(sessions.tokenHash, tokenHash))
      return row && toSession(sealing, row)
    },

    async update({ id, status, requestId, sends }) {
      await executor.update(sessions).set({ status, requestId, sends }).where(eq(sessions.id, id))
    },

    async listPhones(after, limit) {
      const rows = await executor
        .select()
        .from(sessions)
        .where(gt(sessions.id, after))
        .orderBy(asc(sessions.id))
        .limit(limit)
      return rows.map((row) => {
        const { id, developerId } = row
        return { id, developerId, phone: toSession(sealing, row)?.phone ?? null }
      })
    },

    async delete(id) {
      await executor.delete(sessions).where(eq(sessions.id, id))
    },

    async deleteByRequests(requestIds) {
      await executor.delete(sessions).where(inArray(sessions.requestId, requestIds))
    },

    async deleteOldest(until, batchSize) {
      const { id, createdAt } = sessions
      const deleted = await executor
        .delete(sessions)
        .where(areOldestByKey(executor, sessions, id, createdAt, until, batchSize))
        .returning({ id })
      return deleted.length > 0
    },
  }
}
