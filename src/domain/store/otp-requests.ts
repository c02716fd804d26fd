import type { ListedRequest, OtpStatus, OtpRequest } from '../model/request.ts'
import type { Environment } from '../../shared/otp-values.ts'
import type { DeleteOldest } from './delete-oldest.ts'

export type OtpFilter = {
  appId?: string | undefined
  environment?: Environment | undefined
  /** A pending request past `expiresAt` counts as expired. */
  status?: OtpStatus | undefined
}

export type OtpListQuery = OtpFilter & {
  developerId: string
  now: number
  limit: number
  before?: string | undefined
}

/** A request that 0.1.0 made. */
export type OldRequest = Pick<OtpRequest, 'id' | 'developerId' | 'environment' | 'phone' | 'country'>

export type OtpRequestStore = {
  find(id: string): Promise<OtpRequest | undefined>
  /** Finds a request and locks it until the transaction ends. */
  lock(id: string): Promise<OtpRequest | undefined>
  list(query: OtpListQuery): Promise<ListedRequest[]>
  /** Time at which the next pending request expires; undefined if none is pending. */
  nextExpiryAt(): Promise<number | undefined>
  /** Pending requests past `expiresAt`. */
  listExpired(now: number, limit: number): Promise<OtpRequest[]>
  /** Pending requests in the order of `expiresAt` and id. @param after the last one of the page before */
  listPending(after: Pick<OtpRequest, 'expiresAt' | 'id'>, limit: number): Promise<OtpRequest[]>
  insert(requests: readonly OtpRequest[]): void
  /** Lists a request and those of the same phone before it, newest first. */
  listBack(from: string, limit: number): Promise<OtpRequest[]>
  /** Finds the id of the phone's request before this one. */
  findPrevious(id: string): Promise<string | undefined>
  /** Links a request to the phone's request before it; null ends the list here. */
  setPrevious(id: string, previous: string | null): Promise<void>
  /** Lists the next requests by id, up to the first whose number is sealed: 0.1.0 made those that are not. */
  listUnsealed(after: string, limit: number): Promise<OldRequest[]>
  /**
   * Writes the fields of requests that change after the insertion. The caller has locked them.
   *
   * @param changes.statusBefore the stored status; undefined counts as pending
   */
  update(changes: ReadonlyArray<{ request: OtpRequest; statusBefore?: OtpStatus | undefined }>): void
  /** Deletes requests with their messages. */
  deleteOldest: DeleteOldest
}
