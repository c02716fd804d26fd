import type { Receipt } from '../model/delivery.ts'

export type EarlyReceiptKey = Pick<Receipt, 'messageId' | 'requestId'> & { provider: string }

/** Delivery receipts that match no message yet: the node that sends it has not stored the provider's response. */
export type EarlyReceiptStore = {
  /** Keeps a receipt. Of several for one message the latest is kept, and final ones rather than `sent`. */
  put(provider: string, receipt: Receipt, now: number): Promise<void>
  /**
   * Finds the receipt of a message: by the provider's message id, otherwise by request id.
   *
   * @param since ignores receipts that were put before
   */
  find(key: EarlyReceiptKey, since: number): Promise<Receipt | undefined>
  delete(provider: string, receipt: Receipt): Promise<void>
  /** Lists the oldest receipts that were put up to a time. */
  listOldest(until: number, limit: number): Promise<Array<{ provider: string; receipt: Receipt }>>
}
