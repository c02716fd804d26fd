export type RefreshToken = {
  hash: string
  /** Shared by all tokens that descend from one login. */
  family: string
  developerId: string
  createdAt: number
  expiresAt: number
  /** Time at which it was exchanged for its successor. */
  usedAt: number | null
  /** No successor outlives this time, however often the session is used. */
  sessionEndsAt: number
}

export type RefreshTokenStore = {
  find(hash: string): Promise<RefreshToken | undefined>
  /** Inserts in one statement; an existing token stays unchanged. */
  insert(token: RefreshToken): Promise<void>
  /** Marks an unused token as used. @returns true for exactly one of several concurrent callers */
  use(hash: string, now: number): Promise<boolean>
  deleteFamily(developerId: string, family: string): Promise<void>
  deleteByDeveloper(developerId: string): Promise<void>
  /** Deletes a batch of expired tokens. @returns true if there may be more */
  deleteExpired(now: number, batchSize: number): Promise<boolean>
}
