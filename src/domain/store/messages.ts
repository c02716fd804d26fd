import type { ClaimRequest } from '../model/fair-permits.ts'
import type { MessageKey, Message, LoadedMessage, ClaimedMessage } from '../model/message.ts'
import type { Receipt } from '../model/delivery.ts'
import type { OutcomeReportQueue } from './outcome-report-queue.ts'
import type { DeleteOldest } from './delete-oldest.ts'

/** Transactional outbox of messages to phones. Holds neither codes nor texts, which each attempt derives. */
export type MessageStore = {
  /** Reports of how requests ended, to the providers of their messages. */
  readonly reports: OutcomeReportQueue

  insert(messages: readonly Message[]): void
  /** Writes the fields that change after the insertion. The caller has locked the messages. */
  update(messages: readonly Message[]): void
  load(key: MessageKey): Promise<LoadedMessage | undefined>

  /**
   * Leases due messages exclusively until `leaseUntil`, while `permits` has one for their developer. Developers take turns,
   * each with the message that has waited longest.
   */
  claim(request: ClaimRequest): Promise<ClaimedMessage[]>

  /**
   * Time at which the next message may be leased: it is due, and no lease on it is left. Undefined if none is pending.
   */
  nextDueAt(): Promise<number | undefined>

  /** Finds the message of a receipt: by the provider's message id, otherwise by request id. */
  findForReceipt(
    provider: string,
    receipt: Pick<Receipt, 'messageId' | 'requestId'>,
  ): Promise<MessageKey | undefined>

  /** Counts messages that wait for a provider or an attempt's end, up to `limit`. */
  countPending(limit: number): Promise<number>

  /** Releases every lease. Only safe while no other process can hold one. */
  releaseAll(): Promise<void>

  deleteOldest: DeleteOldest
}
