import { and, asc, eq, isNull, lte, ne, notInArray, sql } from 'drizzle-orm'
import type { AlertKey, AlertNoticeKey } from '../domain/model/alert.ts'
import type { AlertStore } from '../domain/store/alerts.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'

/** Stores alerts and the outbox of their notices. */
export function createAlertStore({ database, executor }: Connection): AlertStore {
  const { alerts: table, alertNotices: noticeTable } = database.tables
  const alerts = onTable(executor, table)
  const notices = onTable(executor, noticeTable)
  // Prepared because a server runs them a thousand times an hour.
  const list = database.prepare(() =>
    executor.select().from(table).orderBy(asc(table.kind), asc(table.subject)),
  )
  const listNotices = database.prepare(() =>
    executor
      .select()
      .from(noticeTable)
      .orderBy(asc(noticeTable.at), asc(noticeTable.kind), asc(noticeTable.subject)),
  )
  const isAlert = ({ kind, subject }: AlertKey) => and(eq(table.kind, kind), eq(table.subject, subject))
  const isNotice = ({ destination, kind, subject, at }: AlertNoticeKey) =>
    and(
      eq(noticeTable.destination, destination),
      eq(noticeTable.kind, kind),
      eq(noticeTable.subject, subject),
      eq(noticeTable.at, at),
    )

  return {
    list: () => list(),
    insert: async (alert) => void (await alerts.insertMissing(alert)),
    update: (key, changes) => alerts.update(changes, isAlert(key)),

    fire: (key, now) =>
      alerts.updateOne({ firedAt: now, notifiedAt: now }, and(isAlert(key), isNull(table.firedAt))),
    escalate: (key, severity, now) =>
      alerts.updateOne({ severity, notifiedAt: now }, and(isAlert(key), ne(table.severity, severity))),
    remind: (key, notifiedAt, now) =>
      alerts.updateOne({ notifiedAt: now }, and(isAlert(key), eq(table.notifiedAt, notifiedAt))),
    delete: async (key) => (await alerts.take(isAlert(key))).length > 0,

    async addNotices(added) {
      for (const notice of added)
        await notices.insertMissing({ ...notice, dueAt: notice.at, attempts: 0, failure: null })
    },

    listNotices: () => listNotices(),
    leaseNotice: (key, now, until) =>
      notices.updateOne(
        { dueAt: until, attempts: sql`${noticeTable.attempts} + 1` },
        and(isNotice(key), lte(noticeTable.dueAt, now)),
      ),
    postponeNotice: (key, dueAt, failure) => notices.update({ dueAt, failure }, isNotice(key)),
    deleteNotice: (key) => notices.delete(isNotice(key)),
    deleteNoticesExcept: (destinations) =>
      notices.delete(
        destinations.length === 0 ? undefined : notInArray(noticeTable.destination, [...destinations]),
      ),
  }
}
