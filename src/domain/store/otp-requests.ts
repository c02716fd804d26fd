import type { OtpStatus, OtpRequest, DeliveryStatus, OtpTerminalState } from '../model/request.ts'
import type { MessageKey } from '../model/message.ts'
import type { Candidate } from '../model/delivery.ts'

export type OtpListQuery = {
  developerId: string
  appId?: string | undefined
  /** A pending request past `expiresAt` counts as expired. */
  status?: OtpStatus | undefined
  now: number
  limit: number
  before?: string | undefined
  /** Lowest id to list. */
  from?: string | undefined
}

/** Fields that an attempt changes, and the channel, which a concurrent resend may have changed. */
export type CountedAttempt = Pick<OtpRequest, 'status' | 'attempts' | 'verifiedAt' | 'updatedAt' | 'channel'>

/**
 * Every change is one conditional UPDATE (compare-and-set): it does nothing and returns undefined unless the
 * request is still pending and the change's precondition holds. Of several concurrent callers exactly one
 * succeeds.
 */
export type OtpRequestStore = {
  find(id: string): Promise<OtpRequest | undefined>
  list(query: OtpListQuery): Promise<OtpRequest[]>
  /** Pending requests past `expiresAt`. */
  listExpired(now: number, limit: number): Promise<OtpRequest[]>
  /** Pending requests in the order of `expiresAt` and id. @param after the last one of the page before */
  listPending(after: Pick<OtpRequest, 'expiresAt' | 'id'>, limit: number): Promise<OtpRequest[]>
  insert(request: OtpRequest): Promise<void>
  /** Finds the id of the phone's request before this one. */
  findPrevious(id: string): Promise<string | undefined>
  /** Ends the list of the phone's requests here. */
  cutPrevious(id: string): Promise<void>
  /**
   * Counts an attempt, if fewer than `attemptsMax` were made and the code has not expired. A right one
   * verifies.
   */
  countAttempt(id: string, isRight: boolean, now: number): Promise<CountedAttempt | undefined>
  /** Counts a resend, if resends are left and the last message is at least `resendAfterMs` old. */
  countResend(
    id: string,
    nextMessage: Pick<OtpRequest, 'channel' | 'provider' | 'deliveryStatus'>,
    now: number,
  ): Promise<OtpRequest | undefined>
  /**
   * Updates the delivery state, whatever the status of the request: for the newest message, or for an older
   * one that was delivered. `delivered` is final.
   */
  setDelivery(
    key: MessageKey,
    update: { deliveryStatus: DeliveryStatus; candidate?: Candidate | undefined },
    now: number,
  ): Promise<OtpRequest | undefined>
  close(id: string, terminalState: OtpTerminalState, now: number): Promise<OtpRequest | undefined>
  /**
   * Deletes about `batchSize` of the oldest requests created up to `until`, with their messages.
   *
   * @returns false when none was left
   */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
