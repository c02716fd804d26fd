/** The second factor of a developer (RFC 6238). */
export type TotpSecret = {
  developerId: string
  /** Encrypted. */
  secret: string
  /** Time step of the last accepted code; 0 if none was. */
  lastStep: number
  createdAt: number
  /** Null until the first code shows that an authenticator app has the secret. */
  confirmedAt: number | null
}

export type TotpSecretStore = {
  /** Lists secrets in the order of their developers. @param after the last one of the page before */
  list(after: string, limit: number): Promise<Pick<TotpSecret, 'developerId' | 'secret'>[]>
  /** Replaces the encrypted form of a secret. */
  reseal(developerId: string, secret: string): Promise<void>
  find(developerId: string): Promise<TotpSecret | undefined>
  /** Inserts an unconfirmed secret, or replaces one. @returns false if there is a confirmed one */
  propose(secret: Omit<TotpSecret, 'lastStep' | 'confirmedAt'>): Promise<boolean>
  /**
   * Confirms a secret, unless it was confirmed or replaced concurrently.
   *
   * @param step time step of the code that confirmed it
   */
  confirm(developerId: string, secret: string, step: number, now: number): Promise<boolean>
  /** Uses up the code of a time step. Only one of several concurrent callers succeeds. @returns false if it was used */
  useStep(developerId: string, step: number): Promise<boolean>
  insertRecoveryCodes(developerId: string, hashes: readonly string[]): Promise<void>
  /** Uses up a recovery code. Only one of several concurrent callers succeeds. @returns false if there is none */
  useRecoveryCode(developerId: string, hash: string): Promise<boolean>
  /** Deletes the secret with its recovery codes. @returns false if there was no confirmed one */
  delete(developerId: string): Promise<boolean>
}
