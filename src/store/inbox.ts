import { and, desc, eq, gt, lt, sql } from 'drizzle-orm'
import type { InboxStore } from '../domain/inbox.ts'
import { messageSettings } from './applications.ts'
import { atMost } from './bound.ts'
import type { Builders, Database } from './database.ts'
import { deleteOldestInOrder } from './delete-oldest.ts'
import { toOtpRequest } from './otp-requests.ts'
import { prepareFiltered, type Given } from './prepare-filtered.ts'

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
  type ListFilter = { developerId: string; since: number; limit: number; before: string | undefined }
  const list = prepareFiltered(database, ({ developerId, since, limit, before }: Given<ListFilter>) =>
    on
      .select({ message: inbox, request: otpRequests, application: messageSettings(applications) })
      .from(inbox)
      .innerJoin(otpRequests, eq(otpRequests.id, inbox.requestId))
      .leftJoin(applications, eq(applications.id, otpRequests.appId))
      .where(and(eq(inbox.developerId, developerId), gt(inbox.sentAt, since), before && lt(inbox.id, before)))
      .orderBy(atMost(desc(inbox.id), limit)),
  )

  return {
    async insert(message) {
      await insert(message)
    },

    async list(developerId, since, limit, before) {
      const rows = await list({ developerId, since, limit, before })
      return rows.map(({ message, request, application }) => ({
        ...message,
        application,
        request: toOtpRequest(request),
      }))
    },

    deleteOldest: (until, chunk) => deleteOldestInOrder(on, inbox, inbox.id, inbox.sentAt, until, chunk),
  }
}
