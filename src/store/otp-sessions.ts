import { eq, getTableColumns, inArray, type InferSelectModel } from 'drizzle-orm'
import type { OtpSession } from '../domain/model/session.ts'
import type { OtpSessionStore } from '../domain/store/otp-sessions.ts'
import type { Connection } from './engine/connection.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import { onTable, prepareFind } from './engine/on-table.ts'
import { pageAfter } from './engine/page-after.ts'
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
export function createOtpSessionStore(connection: Connection): OtpSessionStore {
  const { database, executor, sealing } = connection
  const { otpSessions: sessions } = database.tables
  const rows = onTable(executor, sessions)
  const find = prepareFind(connection, sessions, 'id')
  const findByToken = prepareFind(connection, sessions, 'tokenHash')

  const open = (row: Row | undefined) => row && toSession(sealing, row)

  return {
    async insert({ returnUrl, state, phone, locale, template, variables, ...row }) {
      const details: Details = { returnUrl, state, phone, locale, template, variables }
      const sealed = sealing.sealText(detailsColumn, row.id, JSON.stringify(details))
      await rows.insert({ ...row, details: sealed })
    },

    find: async (id) => open(await find({ id })),

    findByToken: async (tokenHash) => open(await findByToken({ tokenHash })),

    update: ({ id, status, requestId, sends }) =>
      rows.update({ status, requestId, sends }, eq(sessions.id, id)),

    async listPhones(after, limit, owner) {
      const found = await pageAfter(executor, getTableColumns(sessions), sessions.id, after, limit)
      return found.map((row) => {
        const { id, developerId } = row
        const session = (owner ?? developerId) === developerId ? toSession(sealing, row) : undefined
        return { id, developerId, phone: session?.phone ?? null }
      })
    },

    delete: (id) => rows.delete(eq(sessions.id, id)),
    deleteByRequests: (requestIds) => rows.delete(inArray(sessions.requestId, requestIds)),

    async deleteOldest(until, batchSize) {
      const { id: key, createdAt: at } = sessions
      return (await deleteOldestByKey(executor, { key, at }, { until, batchSize }, { key })).length > 0
    },
  }
}
