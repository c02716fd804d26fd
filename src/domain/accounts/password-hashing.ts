/** Password hashing, deliberately slow and with bounded concurrency; implemented in `auth/passwords.ts`. */
export type PasswordHashing = {
  /**
   * Runs `work`, which hashes, when it is the network's turn.
   *
   * @throws UNAVAILABLE the queue is full; RATE_LIMITED (LOGIN_ATTEMPTS) the network has used up its budget
   */
  takeTurn<T>(turn: Turn, work: (hasher: PasswordHasher) => Promise<T>): Promise<T>
  /**
   * Runs `check`, which reads what is counted for a login, when it is the network's turn: few run at a time, because anyone
   * may log in as often as they like, and others read from the same connections.
   *
   * @throws UNAVAILABLE the queue is full
   */
  takeCheckTurn<T>(network: string, check: () => Promise<T>): Promise<T>
  /** Finds what is wrong with a new password; undefined if it is accepted. */
  findFault(password: string, owner: PasswordOwner): string | undefined
}

/** Place in the queue of hashes: by network. Networks that the account was logged in to from before come first. */
export type Turn = { network: string; isKnown: boolean }

export type PasswordHasher = {
  /** @param password one without a fault */
  hash(password: string): Promise<string>
  /** Returns false for an undefined hash (unknown account), in the same time. */
  verify(password: string, hash: string | undefined): Promise<boolean>
  /** Whether a hash was made with less work than today's. */
  isOutdated(hash: string): boolean
}

/** The person for whom a password is too easy to guess if it consists of these. */
export type PasswordOwner = { email: string; name: string | null }
