import { sql, type SQL } from 'drizzle-orm'
import { describePostgres } from '../../src/store/postgres/database.ts'
import { createPostgresSession } from '../../src/store/postgres/session.ts'
import type { Database, QueryExecutor } from '../../src/store/engine/database.ts'
import type { OpenTransaction } from '../../src/store/postgres/transactions.ts'

/** The members of drizzle's PGlite database that are needed here. */
type PgliteDatabase = {
  transaction<T>(body: (tx: { execute(query: SQL): Promise<unknown> }) => Promise<T>): Promise<T>
}

/** Wraps PGlite as a database. It has one connection, which its transactions share in turns. */
export function wrapPglite(db: PgliteDatabase, close: () => Promise<void>): Database {
  const begin = () =>
    new Promise<OpenTransaction>((resolve, reject) => {
      const isCommitted = Promise.withResolvers<void>()
      const transaction = db.transaction(async (tx) => {
        const executor = tx as unknown as QueryExecutor
        const session = createPostgresSession(executor, async (text, [value]) => {
          const [before, after = ''] = text.split('$1')
          return tx.execute(sql`${sql.raw(before ?? '')}${value}${sql.raw(after)}`)
        })
        resolve({
          session,
          async commit() {
            await session.settle()
            isCommitted.resolve()
            await transaction
          },
          async rollback() {
            // drizzle rolls back when the body throws.
            isCommitted.reject(new Error('rolled back'))
            await transaction.catch(() => {})
          },
          release: () => {},
        })
        await isCommitted.promise
      })
      transaction.catch(reject)
    })
  return describePostgres({
    read: db as unknown as QueryExecutor,
    begin,
    groupsMax: 1,
    writesMax: Infinity,
    acquireTimeoutMs: 2_000,
    isNamed: false,
    close,
  })
}
