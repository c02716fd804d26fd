/** Identifies a call. The same key from another caller or on another route is a different key. */
export type IdempotencyScope = { caller: string; route: string; key: string; bodyHash: string }
