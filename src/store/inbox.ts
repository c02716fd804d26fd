import { and, desc, eq, gt, lt, sql } from 'drizzle-orm'
import type { Sealing } from './engine/sealing.ts'
import type { InboxStore } from '../domain/store/inbox.ts'
import { messageSettings } from './applications.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import { loadEventIds } from './event-ids.ts'
import { toOtpRequest } from './otp-requests.ts'

/** Stores which requests are in a developer's inbox; their texts are derived when read. */
export function createInboxStore(database: Database, executor: QueryExecutor, sealing: Sealing): InboxStore {
  const { inboxMessages: inbox, otpRequests, applications } = database.tables
  const p = sql.placeholder

  const insert = database.prepare(() =>
    executor.insert(inbox).values({
      seq: p('seq'),
      developerId: p('developerId'),
      requestId: p('requestId'),
      requestVisible: p('requestVisible'),
      sentAt: p('sentAt'),
    }),
  )
  type ListFilter = {
    developerId: string | number
    since: number
    limit: number
    before: number | undefined
  }
  const list = prepareFiltered(
    database,
    ({ developerId, since, limit, before }: FilterPlaceholders<ListFilter>) =>
      executor
        .select({ message: inbox, request: otpRequests, application: messageSettings(applications) })
        .from(inbox)
        .innerJoin(otpRequests, eq(otpRequests.id, inbox.requestId))
        .leftJoin(applications, database.matchesShortId(applications.id, otpRequests.appId))
        .where(
          and(eq(inbox.developerId, developerId), gt(inbox.sentAt, since), before && lt(inbox.seq, before)),
        )
        .orderBy(orderByLimit(desc(inbox.seq), limit)),
  )

  return {
    async insert(message) {
      await insert(message)
    },

    async list(developerId, since, limit, before) {
      const rows = await list({ developerId: database.shortId(developerId), since, limit, before })
      const ids = await loadEventIds(database, executor)
      return rows.map(({ message, request, application }) => ({
        ...message,
        eventId: ids.encode(message.sentAt, message.seq),
        application,
        request: toOtpRequest(sealing, request),
      }))
    },

    deleteOldest: (until, batchSize) =>
      deleteOldestByKey(executor, inbox, inbox.seq, inbox.sentAt, until, batchSize),
  }
}
