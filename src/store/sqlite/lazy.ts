/** Creates a value at its first use, and keeps it. */
export function lazy<T>(create: () => T): () => T {
  let value: T | undefined
  return () => (value ??= create())
}
