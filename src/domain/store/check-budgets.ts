import type { Awaitable } from '../model/awaitable.ts'
import type { CheckBudget } from '../model/phone-record.ts'

/**
 * Budgets of failed checks that 0.1.0 kept per application and phone. They are only read, to move into the records of
 * phones, and disappear within 30 days of the upgrade.
 */
export type CheckBudgetStore = {
  /**
   * Deletes and returns the budgets of a phone in the developer's applications.
   *
   * @param phoneHashes of one or two spellings: `hashPhone`
   */
  take(developerId: string, phoneHashes: readonly string[]): Promise<CheckBudget[]>
  /** Tells whether no budget is left. */
  isEmpty(): Awaitable<boolean>
  /** Tells whether there is a budget of a phone in any application. */
  exists(phoneHashes: readonly string[]): Awaitable<boolean>
  deleteByPhone(phoneHashes: readonly string[]): Promise<void>
  /** @returns how many */
  deleteByApplication(appId: string): Promise<number>
  /**
   * Deletes about `batchSize` budgets that were refilled first, up to `until`.
   *
   * @returns false when none was left
   */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
