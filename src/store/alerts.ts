import { and, asc, eq, isNull, lte, ne, notInArray, sql } from 'drizzle-orm'
import type { AlertKey, AlertNoticeKey } from '../domain/model/alert.ts'
import type { AlertStore } from '../domain/store/alerts.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

/** Stores alerts and the outbox of their notices. */
export function createAlertStore(database: Database, executor: QueryExecutor): AlertStore {
  const { alerts, alertNotices: notices } = database.tables
  const isAlert = ({ kind, subject }: AlertKey) => and(eq(alerts.kind, kind), eq(alerts.subject, subject))
  const isNotice = ({ destination, kind, subject, at }: AlertNoticeKey) =>
    and(
      eq(notices.destination, destination),
      eq(notices.kind, kind),
      eq(notices.subject, subject),
      eq(notices.at, at),
    )
  const listNotices = database.prepare(() =>
    executor.select().from(notices).orderBy(asc(notices.at), asc(notices.kind), asc(notices.subject)),
  )
  /** The columns that statements return, to tell whether they changed a row. */
  const changed = { kind: alerts.kind }

  return {
    async list() {
      return executor.select().from(alerts).orderBy(asc(alerts.kind), asc(alerts.subject))
    },

    async insert(alert) {
      await executor.insert(alerts).values(alert).onConflictDoNothing()
    },

    async update(key, changes) {
      await executor.update(alerts).set(changes).where(isAlert(key))
    },

    async fire(key, now) {
      const rows = await executor
        .update(alerts)
        .set({ firedAt: now, notifiedAt: now })
        .where(and(isAlert(key), isNull(alerts.firedAt)))
        .returning(changed)
      return rows.length > 0
    },

    async escalate(key, severity, now) {
      const rows = await executor
        .update(alerts)
        .set({ severity, notifiedAt: now })
        .where(and(isAlert(key), ne(alerts.severity, severity)))
        .returning(changed)
      return rows.length > 0
    },

    async remind(key, notifiedAt, now) {
      const rows = await executor
        .update(alerts)
        .set({ notifiedAt: now })
        .where(and(isAlert(key), eq(alerts.notifiedAt, notifiedAt)))
        .returning(changed)
      return rows.length > 0
    },

    async delete(key) {
      return (await executor.delete(alerts).where(isAlert(key)).returning(changed)).length > 0
    },

    async addNotices(added) {
      if (added.length === 0) return
      const rows = added.map((notice) => ({ ...notice, dueAt: notice.at, attempts: 0, failure: null }))
      await executor.insert(notices).values(rows).onConflictDoNothing()
    },

    listNotices: async () => listNotices(),

    async leaseNotice(key, now, until) {
      const leased = await executor
        .update(notices)
        .set({ dueAt: until, attempts: sql`${notices.attempts} + 1` })
        .where(and(isNotice(key), lte(notices.dueAt, now)))
        .returning({ kind: notices.kind })
      return leased.length > 0
    },

    async postponeNotice(key, dueAt, failure) {
      await executor.update(notices).set({ dueAt, failure }).where(isNotice(key))
    },

    async deleteNotice(key) {
      await executor.delete(notices).where(isNotice(key))
    },

    async deleteNoticesExcept(destinations) {
      const isOther =
        destinations.length === 0 ? undefined : notInArray(notices.destination, [...destinations])
      await executor.delete(notices).where(isOther)
    },
  }
}
