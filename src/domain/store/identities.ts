import type { Identity } from '../model/identity.ts'

export type IdentityStore = {
  /** Finds the identity by phone or by the phone's pseudonym. */
  findByPhone(developerId: string, phone: string, pseudonym: string): Promise<Identity | undefined>
  applicationsByIdentity(identityIds: string[]): Promise<Map<string, string[]>>
  list(developerId: string, limit: number, before?: string): Promise<Identity[]>
  /** @returns false if the developer already has one for this phone */
  insert(identity: Identity): Promise<boolean>
  /** Replaces the pseudonym of an identity by its number. */
  restorePhone(existing: Identity, phone: string): Promise<void>
  /**
   * Counts a verification.
   *
   * @returns false if `existing` is stale: another one was counted, or its phone was replaced
   */
  countVerification(existing: Identity, now: number): Promise<boolean>
  /** Links the application; does nothing if it is already linked. */
  addApplication(identityId: string, appId: string): Promise<void>
}
