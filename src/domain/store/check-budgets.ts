import type { CheckBudget } from '../model/phone-record.ts'
import type { DeleteOldest } from './delete-oldest.ts'

/**
 * Names the budgets of a phone in a developer's applications. `phoneHashes` are of one or two spellings: `oldPhoneHashes`.
 */
export type OldBudgets = { developerId: string; phoneHashes: readonly string[] }

/**
 * Budgets of failed checks that 0.1.0 kept per application and phone. They are only read, to move into the records of
 * phones, and disappear within 30 days of the upgrade.
 */
export type CheckBudgetStore = {
  list(budgets: OldBudgets): Promise<CheckBudget[]>
  /** @returns how many */
  delete(budgets: OldBudgets): Promise<number>
  deleteByPhone(phoneHashes: readonly string[]): Promise<void>
  /** @returns how many */
  deleteByApplication(appId: string): Promise<number>
  /** Deletes the budgets that were refilled first. */
  deleteOldest: DeleteOldest
}
