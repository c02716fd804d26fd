import type { Receipt } from '../model/delivery.ts'
import type { RelayedMessage } from '../model/relayed-message.ts'

/** Messages with codes of other systems. Holds neither codes nor texts. */
export type RelayedMessageStore = {
  insert(message: RelayedMessage): Promise<void>
  /** Finds the id of a receipt's message: by the provider's message id, otherwise by its own. */
  findForReceipt(
    provider: string,
    receipt: Pick<Receipt, 'messageId' | 'requestId'>,
  ): Promise<string | undefined>
  /** Reads a message, and locks it until the transaction ends. */
  lock(id: string): Promise<RelayedMessage | undefined>
  /** The caller has locked the message. */
  setStatus(message: Pick<RelayedMessage, 'id' | 'status' | 'messageId'>): Promise<void>
  /** The caller has locked the message. */
  setOutcome(message: Pick<RelayedMessage, 'id' | 'outcome'>): Promise<void>
  /** Lists the phones of messages in the order of their ids. @param after an id */
  listPhones(
    after: string,
    limit: number,
  ): Promise<Array<Pick<RelayedMessage, 'id' | 'developerId' | 'phone'>>>
  delete(id: string): Promise<void>
  /** Deletes a batch of the oldest messages up to a time. @returns true if there may be more */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
