import type { ClientBase } from 'pg'

/** Time that a statement waits for a lock, such as that of a maintenance job. */
const lockTimeout = '5s'

/**
 * Runs `work` in one snapshot that only reads, on a connection without limits of time.
 *
 * @throws the driver's 55P03 after 5 s if another transaction keeps a table locked
 */
export async function withSnapshot<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('begin transaction isolation level repeatable read read only')
  try {
    await client.query(`set local lock_timeout = '${lockTimeout}'`)
    return await work()
  } finally {
    await client.query('rollback')
  }
}
