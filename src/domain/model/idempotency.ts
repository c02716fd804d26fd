/** Identifies a call. The same key from another caller or on another route is a different key. */
export type IdempotencyScope = {
  caller: string
  route: string
  key: string
  /** Keyed hash of the body. */
  bodyHash: string
  /** Hashes of the same body that were stored before the key was replaced, and by 0.1.0. */
  earlierBodyHashes: readonly string[]
}
