import type { DeveloperStore } from './developers.ts'
import type { IdempotencyStore } from './idempotency.ts'
import type { ProjectStore } from './projects.ts'

/** One store a noun. The finders work anywhere; what writes works only inside `Store.write`. */
export type Stores = {
  developers: DeveloperStore
  idempotency: IdempotencyStore
  projects: ProjectStore
}

/** Everything that otpd remembers. */
export type Store = {
  /** Reads what is committed. */
  readonly read: Stores

  /**
   * Runs `body` in one transaction and resolves once it is durable. A throw undoes all of it.
   *
   * The body awaits nothing but the stores that it is given.
   *
   * @throws UNAVAILABLE the database cannot be written to right now
   */
  write<T>(body: (tx: Stores) => Promise<T>): Promise<T>
}
