import { and, eq, isNull, type InferSelectModel } from 'drizzle-orm'
import type { RelayedMessage } from '../domain/model/relayed-message.ts'
import type { RelayedMessageStore } from '../domain/store/relayed-messages.ts'
import type { Connection } from './engine/connection.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import { onTable, prepareFind } from './engine/on-table.ts'
import { pageAfter } from './engine/page-after.ts'
import type { Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'

const phoneColumn = 'relayed_messages.phone'
const addressColumn = 'relayed_messages.client_ip'

type Row = InferSelectModel<Tables['relayedMessages']>

export const toRelayedMessage = (sealing: Sealing, row: Row): RelayedMessage => ({
  ...row,
  phone: sealing.openPhone(phoneColumn, row.id, row.phone),
  clientIp: sealing.openText(addressColumn, row.id, row.clientIp),
})

/** Stores messages with codes of other systems. */
export function createRelayedMessageStore(connection: Connection): RelayedMessageStore {
  const { database, executor, sealing } = connection
  const { relayedMessages: messages } = database.tables
  const rows = onTable(executor, messages)
  const findByMessageId = prepareFind(connection, messages, 'provider', 'messageId')

  return {
    async insert(message) {
      const phone = sealing.sealPhone(phoneColumn, message.id, message.phone)
      const clientIp = sealing.sealText(addressColumn, message.id, message.clientIp)
      await rows.insert({ ...message, phone, clientIp })
    },

    async findForReceipt(provider, { messageId, requestId }) {
      if (messageId !== null) {
        const found = await findByMessageId({ provider, messageId })
        if (found) return found.id
      }
      if (requestId === null) return undefined
      // A row with a different message id is a different message.
      const hasNoMessageId = messageId === null ? undefined : isNull(messages.messageId)
      const isOwn = and(eq(messages.id, requestId), eq(messages.provider, provider), hasNoMessageId)
      return (await rows.find(isOwn))?.id
    },

    async update({ id, status, messageId, outcome, chargedPrice }) {
      await rows.update({ status, messageId, outcome, chargedPrice }, eq(messages.id, id))
    },

    async listPhones(after, limit, owner) {
      const { id, developerId, phone } = messages
      const found = await pageAfter(executor, { id, developerId, phone }, id, after, limit)
      const open = (row: (typeof found)[number]) => sealing.openPhone(phoneColumn, row.id, row.phone)
      return found.map((row) => ({
        ...row,
        phone: (owner ?? row.developerId) === row.developerId ? open(row) : null,
      }))
    },

    delete: (id) => rows.delete(eq(messages.id, id)),

    async deleteOldest(until, batchSize) {
      const { id: key, createdAt: at } = messages
      return (await deleteOldestByKey(executor, { key, at }, { until, batchSize }, { key })).length > 0
    },
  }
}
