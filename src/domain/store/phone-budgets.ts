/** Check budget: failed attempts of one phone in one application, across all its requests. */
export type CheckBudget = {
  /** When the last failure so far is forgiven. One is forgiven per hour. */
  refilledAt: number
  /** Failures since the last success. */
  consecutiveFailures: number
  lockedUntil: number | null
}

export type CheckBudgetStore = {
  find(appId: string, phoneHash: string): Promise<CheckBudget | undefined>
  put(appId: string, phoneHash: string, budget: CheckBudget): Promise<void>
  /** @returns ids of the applications that had one */
  deleteByPhone(phoneHash: string): Promise<string[]>
  /** @returns how many budgets were deleted */
  deleteByApplication(appId: string): Promise<number>
  /**
   * Deletes about `batchSize` budgets that were refilled first, up to `until`.
   *
   * @returns false when none was left
   */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
