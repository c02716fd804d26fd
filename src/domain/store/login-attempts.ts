/** A stored attempt counts as failed. `seq` distinguishes the attempts of one network at one account. */
type LoginAttempt = { at: number; seq: number }

/** Failed logins. Networks and accounts are keyed hashes, since most addresses that are tried have no account. */
export type LoginAttemptStore = {
  /** Lists the stored attempts of a network at an account, oldest first. */
  list(network: string, account: string): Promise<LoginAttempt[]>
  /** Lists the accounts at which a network failed since a time, each with its last failure, latest first. */
  listAccounts(network: string, since: number): Promise<{ account: string; at: number }[]>
  insert(network: string, account: string, attempt: LoginAttempt): Promise<void>
  delete(network: string, account: string, seq: number): Promise<void>
  /** Deletes the attempts of all networks at an account. */
  deleteByAccount(account: string): Promise<void>
  /** Reads the failures counted for a subject; 0 for an unknown one. */
  countedFailures(subject: string): Promise<number>
  /** Counts a failure of a subject, and locks it until the transaction ends. @returns its failures */
  count(subject: string, now: number): Promise<number>
  /** Takes back a counted failure. */
  uncount(subject: string): Promise<void>
  /** Forgets the failures of a subject. */
  forget(subject: string): Promise<void>
  /** Sets the time of a subject's last failure. */
  touch(subject: string, now: number): Promise<void>
  /** Whether the account was logged in to from the network before. @param hashes of the network, in all versions */
  isKnownNetwork(developerId: string, hashes: readonly string[]): Promise<boolean>
  /** Remembers a network that an account was logged in to from. @param networksMax keeps only the latest ones */
  addNetwork(developerId: string, network: string, now: number, networksMax: number): Promise<void>
  /**
   * Deletes failures up to a time, and counters up to another or beyond the newest `countersMax`.
   *
   * @returns true if there may be more
   */
  deleteOldest(
    until: { failures: number; counters: number; countersMax: number },
    batchSize: number,
  ): Promise<boolean>
}
