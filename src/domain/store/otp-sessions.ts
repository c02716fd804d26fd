import type { OtpSession } from '../model/session.ts'
import type { DeleteOldest } from './delete-oldest.ts'

/** Sessions of the ready page. */
export type OtpSessionStore = {
  insert(session: OtpSession): Promise<void>
  find(id: string): Promise<OtpSession | undefined>
  /** Finds a session by the hash of the token in its link. */
  findByToken(tokenHash: string): Promise<OtpSession | undefined>
  /** Writes what changes after the insertion: status and request. The caller has locked the session. */
  update(session: OtpSession): Promise<void>
  /**
   * Lists the phones that sessions were created for, in the order of their ids.
   *
   * @param after an id
   * @param owner developer whose phones are decrypted; those of others are null
   */
  listPhones(
    after: string,
    limit: number,
    owner?: string,
  ): Promise<Array<Pick<OtpSession, 'id' | 'developerId' | 'phone'>>>
  delete(id: string): Promise<void>
  /** Deletes the sessions whose newest request is one of these. Reads all sessions. */
  deleteByRequests(requestIds: string[]): Promise<void>
  deleteOldest: DeleteOldest
}
