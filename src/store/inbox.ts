import { and, desc, eq, gt, lt, sql } from 'drizzle-orm'
import type { InboxStore } from '../domain/otp/inbox.ts'
import { messageSettings } from './applications.ts'
import { atMost } from './engine/typed-placeholders.ts'
import type { Builders, Database } from './engine/database.ts'
import { deleteOldestInOrder } from './engine/delete-oldest.ts'
import { toOtpRequest } from './otp-requests.ts'
import { prepareFiltered, type Given } from './engine/prepare-filtered.ts'

export function createInboxStore(database: Database, on: Builders): InboxStore {
  const { inboxMessages: inbox, otpRequests, applications } = database.tables
  const p = sql.placeholder

  const insert = database.prepare(() =>
    on.insert(inbox).values({
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
  const list = prepareFiltered(database, ({ developerId, since, limit, before }: Given<ListFilter>) =>
    on
      .select({ message: inbox, request: otpRequests, application: messageSettings(applications) })
      .from(inbox)
      .innerJoin(otpRequests, eq(otpRequests.id, inbox.requestId))
      .leftJoin(applications, database.isSame(applications.id, otpRequests.appId))
      .where(
        and(eq(inbox.developerId, developerId), gt(inbox.sentAt, since), before && lt(inbox.seq, before)),
      )
      .orderBy(atMost(desc(inbox.seq), limit)),
  )

  return {
    async insert(message) {
      await insert(message)
    },

    async list(developerId, since, limit, before) {
      const rows = await list({ developerId: database.shortId(developerId), since, limit, before })
      return rows.map(({ message, request, application }) => ({
        ...message,
        application,
        request: toOtpRequest(request),
      }))
    },

    deleteOldest: (until, chunk) => deleteOldestInOrder(on, inbox, inbox.seq, inbox.sentAt, until, chunk),
  }
}
