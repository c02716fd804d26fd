import type { Developer, DeveloperChanges } from '../model/developer.ts'

export type DeveloperStore = {
  find(id: string): Promise<Developer | undefined>
  findBySubject(issuer: string, subject: string): Promise<Developer | undefined>
  /**
   * Finds the developer of an ID token, and whether its session exists, in one read.
   *
   * @param sessionId null for a token without a session
   */
  findLogin(
    issuer: string,
    subject: string,
    sessionId: string | null,
  ): Promise<{ developer: Developer; hasSession: boolean } | undefined>
  /** Several may match: one person may have two subjects at an external provider. */
  findByEmail(email: string): Promise<Developer[]>
  hasAny(): Promise<boolean>
  /** Lists all, oldest first. */
  list(): Promise<Developer[]>
  /** Inserts in one statement. @returns false if the subject, the virtual number or the invited address is taken */
  insert(developer: Developer): Promise<boolean>
  /** Binds the account invited with this address to a subject. Exactly one of several concurrent callers gets it. */
  claimInvitation(
    email: string,
    login: { issuer: string; subject: string; name: string | null },
    now: number,
  ): Promise<Developer | undefined>
  update(id: string, changes: DeveloperChanges, now: number): Promise<Developer | undefined>
  /** Refuses all ID tokens that were issued before a time. */
  setTokensValidFrom(id: string, validFrom: number): Promise<void>
  /**
   * Removes a developer's personal data and disables the account. The row stays as the owner of its resources; a later
   * login of the same person, or an account with the same address, is a new developer.
   */
  anonymize(id: string, now: number): Promise<void>
  /** Locks the developer until the transaction ends, so that counts checked against a limit stay valid. */
  lock(id: string): Promise<void>
}
