/** A developer's login at the built-in identity provider. */
export type Account = {
  developerId: string
  /** Lower case; unique. */
  email: string
  passwordHash: string
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
  updatePassword(developerId: string, passwordHash: string, now: number): Promise<void>
  delete(developerId: string): Promise<void>
}
