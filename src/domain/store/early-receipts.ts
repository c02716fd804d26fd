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
  /** Deletes a batch of the oldest receipts up to a time. @returns true if there may be more */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
