/** Fills the array with cryptographically secure random bytes. Tests pass their own. */
export type Random = (bytes: Uint8Array<ArrayBuffer>) => unknown
