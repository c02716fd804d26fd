import { and, desc, eq, gt, lt, type SQL } from 'drizzle-orm'
import type { InboxMessage, InboxStore } from '../domain/store/inbox.ts'
import { messageSettings } from './applications.ts'
import { type FilterPlaceholders, inJson, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import { inOrder, loadListed } from './list-reads.ts'
import { columnsOf, insertInto } from './engine/row-writes.ts'
import { loadEventIds, afterLastSeq } from './event-ids.ts'
import { inboxList } from './sqlite/list-numbers.ts'
import { addToList, removeFromList } from './list-changes.ts'
import { toOtpRequest } from './otp-request-rows.ts'

/** Stores which requests are in a developer's inbox; their texts are derived when read. */
export function createInboxStore(connection: Connection): InboxStore {
  const { database, executor, sealing } = connection
  const { inboxMessages: inbox, otpRequests, applications } = database.tables
  const insert = database.writeRows(
    executor,
    insertInto(columnsOf<typeof inbox, InboxMessage>(inbox, {}), {
      computed: { seq: afterLastSeq('given.seq') },
    }),
  )
  type PageFilter = {
    developerId: string | number
    since: number
    limit: number
    before: number | undefined
  }
  const selectMessages = (condition: SQL | undefined) =>
    executor
      .select({ message: inbox, request: otpRequests, application: messageSettings(applications) })
      .from(inbox)
      .innerJoin(otpRequests, eq(otpRequests.id, inbox.requestId))
      .leftJoin(applications, database.matchesShortId(applications.id, otpRequests.appId))
      .where(condition)
  // PostgreSQL
  const listPage = prepareFiltered(
    database,
    ({ developerId, since, limit, before }: FilterPlaceholders<PageFilter>) =>
      selectMessages(
        and(eq(inbox.developerId, developerId), gt(inbox.sentAt, since), before && lt(inbox.seq, before)),
      ).orderBy(orderByLimit(desc(inbox.seq), limit)),
  )
  // SQLite
  const listSeqs = prepareFiltered(
    database,
    ({ seqs, since }: FilterPlaceholders<{ seqs: string; since: number }>) =>
      selectMessages(and(inJson(inbox.seq, seqs), gt(inbox.sentAt, since))),
  )

  async function listRows(filter: PageFilter) {
    const lists = database.sqlite?.lists
    if (!lists) return listPage(filter)
    const { developerId, since, limit, before } = filter
    const sources = { owners: [developerId], lists: [inboxList] }
    return loadListed(lists, sources, { before }, limit, async (seqs: number[]) => {
      const rows = await listSeqs({ seqs: JSON.stringify(seqs), since })
      // The rest is older still.
      return rows.length === 0 ? undefined : inOrder(seqs, rows, ({ message }) => message.seq)
    })
  }

  return {
    insert(messages) {
      for (const message of messages) addToList(database, inboxList, message.developerId, message.seq)
      insert(messages)
    },

    async list(developerId, since, limit, before) {
      const rows = await listRows({ developerId: database.shortId(developerId), since, limit, before })
      const ids = await loadEventIds(connection)
      return rows.map(({ message, request, application }) => ({
        ...message,
        eventId: ids.encode(message.sentAt, message.seq),
        application,
        request: toOtpRequest(sealing, request),
      }))
    },

    async deleteOldest(until, batchSize) {
      const { seq, sentAt: at, developerId } = inbox
      const returned = { seq, developerId }
      const deleted = await deleteOldestByKey(executor, { key: seq, at }, { until, batchSize }, returned)
      for (const row of deleted) removeFromList(database, inboxList, row.developerId, row.seq)
      return deleted.length > 0
    },
  }
}
