import { sql, type SQL } from 'drizzle-orm'

// For prepared statements that order their rows. There SQLite would look into a bare placeholder for a better plan, and
// so prepare the statement anew for every value: five times what running it takes.

export const textParam = (name: string) => sql<string>`cast(${sql.placeholder(name)} as text)`

/** Of 64 bits. */
export const integerParam = (name: string) => sql<number>`cast(${sql.placeholder(name)} as bigint)`

/** The last part of an order of which only the first row is wanted. drizzle's own `limit` is a placeholder. */
export const orderByLimit1 = (order: SQL) => sql`${order} limit 1`

/** The last part of an order of which so many rows are wanted. */
export const orderByLimit = (order: SQL, limit: SQL) => sql`${order} limit ${limit}`
