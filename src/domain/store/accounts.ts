/** A developer's login at the built-in identity provider. */
type Account = {
  developerId: string
  /** Lower case; unique. */
  email: string
  passwordHash: string
  /** Failed logins since the last one that succeeded, from all networks together. */
  failedLogins: number
  createdAt: number
  updatedAt: number
}

export type AccountStore = {
  /** Returns true if any account exists. */
  hasAny(): Promise<boolean>
  find(developerId: string): Promise<Account | undefined>
  findByEmail(email: string): Promise<Account | undefined>
  /** Inserts in one statement. @returns false if the address is taken */
  insert(account: Account): Promise<boolean>
  /** Sets a new password and forgets the failed logins. */
  updatePassword(developerId: string, passwordHash: string, now: number): Promise<void>
  /** Replaces the hash of the same password, unless another password was set concurrently. */
  rehash(developerId: string, oldHash: string, newHash: string): Promise<void>
  /** Changes the number of failed logins, and locks the account until the transaction ends. @returns the new number */
  addFailedLogins(developerId: string, change: 1 | -1): Promise<number>
  /** As `addFailedLogins`. @returns false if the account was deleted */
  resetFailedLogins(developerId: string): Promise<boolean>
  delete(developerId: string): Promise<void>
}
