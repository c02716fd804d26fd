import { and, desc, eq, gt, lt, sql } from 'drizzle-orm'
import type { InboxStore } from '../domain/inbox.ts'
import { messageSettings } from './applications.ts'
import type { Builders, Database } from './database.ts'
import { deleteOldestInOrder } from './delete-oldest.ts'
import { toOtpRequest } from './otp-requests.ts'

export function createInboxStore(database: Database, on: Builders): InboxStore {
  const { inboxMessages: inbox, otpRequests, applications } = database.tables
  const p = sql.placeholder

  const insert = database.prepare(() =>
    on.insert(inbox).values({
      id: p('id'),
      developerId: p('developerId'),
      requestId: p('requestId'),
      requestVisible: p('requestVisible'),
      sentAt: p('sentAt'),
    }),
  )

  return {
    async insert(message) {
      await insert(message)
    },

    async list(developerId, since, limit, before) {
      const rows = await on
        .select({ message: inbox, request: otpRequests, application: messageSettings(applications) })
        .from(inbox)
        .innerJoin(otpRequests, eq(otpRequests.id, inbox.requestId))
        .leftJoin(applications, eq(applications.id, otpRequests.appId))
        .where(
          and(
            eq(inbox.developerId, developerId),
            gt(inbox.sentAt, since),
            before === undefined ? undefined : lt(inbox.id, before),
          ),
        )
        .orderBy(desc(inbox.id))
        .limit(limit)
      return rows.map(({ message, request, application }) => ({
        ...message,
        application,
        request: toOtpRequest(request),
      }))
    },

    deleteOldest: (until, chunk) => deleteOldestInOrder(on, inbox, inbox.id, inbox.sentAt, until, chunk),
  }
}
