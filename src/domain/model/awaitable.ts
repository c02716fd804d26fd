/** A value, or a promise of it: SQLite has its rows at once, PostgreSQL later. */
export type Awaitable<T> = T | Promise<T>

/**
 * Uses a value as soon as it is there; if it is, errors are thrown at once. An async function for each of the thirty rows
 * that a call reads and writes would make a seventh of its garbage.
 */
export const andThen = <T, R>(value: Awaitable<T>, use: (value: T) => Awaitable<R>): Awaitable<R> =>
  value instanceof Promise ? value.then(use) : use(value)
