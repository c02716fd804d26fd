import type { Receipt } from '../model/delivery.ts'
import type { RelayedMessage } from '../model/relayed-message.ts'
import type { DeleteOldest } from './delete-oldest.ts'

/** Messages with codes of other systems. Holds neither codes nor texts. */
export type RelayedMessageStore = {
  insert(message: RelayedMessage): Promise<void>
  /** Finds the id of a receipt's message: by the provider's message id, otherwise by its own. */
  findForReceipt(
    provider: string,
    receipt: Pick<Receipt, 'messageId' | 'requestId'>,
  ): Promise<string | undefined>
  /** Writes what changes after the insertion: status, message id and outcome. The caller has locked the message. */
  update(message: RelayedMessage): Promise<void>
  /**
   * Lists the phones of messages in the order of their ids.
   *
   * @param after an id
   * @param owner developer whose phones are decrypted; those of others are null
   */
  listPhones(
    after: string,
    limit: number,
    owner?: string,
  ): Promise<Array<Pick<RelayedMessage, 'id' | 'developerId'> & { phone: string | null }>>
  delete(id: string): Promise<void>
  deleteOldest: DeleteOldest
}
