import type { ListRule } from '../model/list-rule.ts'

/** Stores the rules that developers made for the guard. */
export type ListRuleStore = {
  /** Lists the rules of a developer, newest first, also those that have expired. */
  list(developerId: string): Promise<readonly ListRule[]>
  /** Replaces the rules of a developer. The caller must hold the row lock on the developer. */
  save(developerId: string, rules: readonly ListRule[]): Promise<void>
  /** Lists developers who have expired rules. */
  listExpired(now: number, limit: number): Promise<string[]>
}
