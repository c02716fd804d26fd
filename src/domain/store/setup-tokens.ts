type SetupToken = {
  hash: string
  /** 1: created at the first start; invalid once there is an account. 0: created by the operator. */
  first: number
  createdAt: number
  expiresAt: number
}

export type SetupTokenStore = {
  isValid(hash: string, now: number): Promise<boolean>
  insert(token: SetupToken): Promise<void>
  /** Deletes a valid token. @returns true for exactly one of several concurrent callers */
  use(hash: string, now: number): Promise<boolean>
  deleteFirstStartToken(): Promise<void>
  deleteExpired(now: number): Promise<void>
}
