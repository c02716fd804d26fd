import type { Message, MessageKey } from '../model/message.ts'

/** Messages whose providers have yet to hear how the request ended. Part of the outbox of messages. */
export type OutcomeReportQueue = {
  /**
   * Leases reports until `leaseUntil`: those that are due, longest first, or those of these requests, due or not. A
   * report that is not settled until then is due again.
   */
  claim(query: {
    now: number
    leaseUntil: number
    limit: number
    requestIds?: readonly string[] | undefined
  }): Promise<MessageKey[]>

  /** Time at which the next report is due; undefined if there is none. */
  nextDueAt(): Promise<number | undefined>

  /** Tells whether a later message has the provider's id of this one, too. */
  hasLaterMessage(message: Pick<Message, 'provider' | 'messageId' | 'createdAt'>): Promise<boolean>

  /**
   * Sets when a report that was leased is due next; null ends it. Does nothing if the message changed what is to report since,
   * such as by a receipt that names its id: then it is due by that.
   */
  endLease(key: MessageKey, leaseUntil: number, dueAt: number | null): Promise<void>
}
