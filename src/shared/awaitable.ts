/** A value, or a promise of it: SQLite has its rows at once, PostgreSQL later. */
export type Awaitable<T> = T | Promise<T>

/**
 * Uses a value as soon as it is there. A call reads and writes some thirty rows, and an async function for each of them
 * would leave more garbage than everything else that the call does.
 */
export const andThen = <T, R>(value: Awaitable<T>, use: (value: T) => Awaitable<R>): Awaitable<R> =>
  value instanceof Promise ? value.then(use) : use(value)
