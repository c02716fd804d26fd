import { and, asc, eq, lte, sql, type InferSelectModel } from 'drizzle-orm'
import type { Receipt } from '../domain/model/delivery.ts'
import type { EarlyReceiptKey, EarlyReceiptStore } from '../domain/store/early-receipts.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'
import type { Tables } from './engine/tables.ts'

type Row = InferSelectModel<Tables['earlyReceipts']>

/** Stores receipts until their message is known. */
export function createEarlyReceiptStore({ database, executor }: Connection): EarlyReceiptStore {
  const { earlyReceipts: receipts } = database.tables
  const rows = onTable(executor, receipts)
  const p = sql.placeholder
  const toKey = ({ provider, messageId, requestId }: EarlyReceiptKey) => ({
    provider,
    messageId: messageId ?? '',
    requestId: requestId ?? '',
  })

  // Prepared because every attempt that a provider accepted runs it.
  const find = database.prepare(() =>
    executor
      .select()
      .from(receipts)
      .where(
        and(
          eq(receipts.provider, p('provider')),
          sql`${receipts.receivedAt} >= ${p('since')}`,
          sql`(${receipts.messageId} = ${p('messageId')} and ${receipts.messageId} <> ''
            or ${receipts.requestId} = ${p('requestId')} and (${receipts.messageId} = '' or ${p('messageId')} = ''))`,
        ),
      )
      .orderBy(sql`case ${receipts.status} when 'sent' then 1 else 0 end`, sql`${receipts.receivedAt} desc`)
      .limit(1),
  )

  return {
    async put(provider, receipt, now) {
      const { status, failure, charge = null } = receipt
      const values = { status, failure: failure && JSON.stringify(failure), receivedAt: now, charge }
      await rows.put(
        { ...toKey({ ...receipt, provider }), ...values },
        {
          target: [receipts.provider, receipts.messageId, receipts.requestId],
          set: values,
          setWhere: status === 'sent' ? eq(receipts.status, 'sent') : undefined,
        },
      )
    },

    async find(key, since) {
      const [row] = await find({ ...toKey(key), since })
      return row && toReceipt(row)
    },

    delete(provider, receipt) {
      const { messageId, requestId } = toKey({ ...receipt, provider })
      const isSame = and(eq(receipts.messageId, messageId), eq(receipts.requestId, requestId))
      return rows.delete(and(eq(receipts.provider, provider), isSame))
    },

    async listOldest(until, limit) {
      const oldest = await executor
        .select()
        .from(receipts)
        .where(lte(receipts.receivedAt, until))
        .orderBy(asc(receipts.receivedAt))
        .limit(limit)
      return oldest.map((row) => ({ provider: row.provider, receipt: toReceipt(row) }))
    },
  }
}

const toReceipt = ({ messageId, requestId, status, failure, charge }: Row): Receipt => ({
  messageId: messageId === '' ? null : messageId,
  requestId: requestId === '' ? null : requestId,
  status,
  // `put` is the only writer.
  failure: failure === null ? null : (JSON.parse(failure) as Receipt['failure']),
  ...(charge !== null && { charge }),
})
