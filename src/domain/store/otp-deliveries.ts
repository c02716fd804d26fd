import type { MessageKey, Message, LoadedMessage, ClaimedMessage, MessageOutcome } from '../model/message.ts'
import type { Channel } from '../model/request.ts'
import type { Receipt } from '../model/delivery.ts'

/** Transactional outbox of messages to phones. Holds neither codes nor texts, which each attempt derives. */
export type OtpDeliveryStore = {
  /** Inserts a message that is leased to its sender, which makes the first attempt at once. */
  insert(
    message: MessageKey & { channels: Channel[] },
    owner: string,
    now: number,
    leaseUntil: number,
  ): Promise<void>
  /** Marks earlier messages of the request that wait, and are not leased, as `void`. */
  supersede(key: MessageKey, now: number): Promise<void>
  find(key: MessageKey): Promise<Message | undefined>
  load(key: MessageKey): Promise<LoadedMessage | undefined>
  /** Messages of one request, oldest first. */
  list(requestId: string): Promise<Message[]>

  /** Leases due messages, the longest waiting first, exclusively until `leaseUntil`. */
  claim(request: { owner: string; now: number; leaseUntil: number; limit: number }): Promise<ClaimedMessage[]>

  /**
   * Ends an attempt and its lease.
   *
   * @returns false if another sender holds the lease by now; nothing was written
   */
  finish(claim: ClaimedMessage, outcome: MessageOutcome, now: number): Promise<boolean>

  /** Finds the message of a receipt: by the provider's message id, otherwise by request id. */
  findForReceipt(
    provider: string,
    receipt: Pick<Receipt, 'messageId' | 'requestId'>,
  ): Promise<MessageKey | undefined>

  /** Applies a receipt, only forwards. @returns false if the message already has this or a later status */
  receive(key: MessageKey, provider: string, receipt: Receipt, now: number): Promise<boolean>

  /** Makes an undelivered message pending again, for the candidates that are not excluded. */
  reopen(key: MessageKey, excluded: readonly string[], now: number): Promise<void>

  /** Releases every lease. Only safe while no other process can hold one. */
  releaseAll(): Promise<void>

  /**
   * Deletes about `batchSize` of the oldest messages created up to `until`.
   *
   * @returns false when none was left
   */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
