import type { Database as SqliteConnection } from 'bun:sqlite'
import { isBusy } from '../engine/errors.ts'

/** Pages per transaction: 1 MB, which takes a few milliseconds. */
const pagesPerBatch = 256

const rowName = (number: number) => `free_space_${String(number).padStart(8, '0')}`

/**
 * Overwrites the free pages of a database, which keep deleted data, by filling them with rows that are deleted again with
 * `secure_delete`. Neither locks the database for longer than a batch nor needs the space of a copy, as VACUUM does.
 *
 * @param write runs its argument in a transaction of this connection
 * @param yieldToRequests awaited between batches; false ends the work
 * @returns false if it was ended early
 */
export async function overwriteFreePages(
  connection: SqliteConnection,
  write: (body: () => void) => Promise<void>,
  yieldToRequests: () => Promise<boolean>,
): Promise<boolean> {
  const number = (query: string) => Number(connection.query<never, []>(query).values()[0]?.[0] ?? 0)
  const batchMax = Math.ceil(number('PRAGMA freelist_count') / pagesPerBatch)
  const filler = '0'.repeat(pagesPerBatch * number('PRAGMA page_size'))
  let isFinished = true
  for (let batch = 0; batch < batchMax && isFinished && number('PRAGMA freelist_count') > 0; batch++) {
    await write(() => {
      connection.run('insert into meta (name, value) values (?, ?) on conflict do nothing', [
        rowName(batch),
        filler,
      ])
    })
    isFinished = await yieldToRequests()
  }
  // Also those of a run that was killed.
  const rows = connection
    .query<{ name: string }, []>(`select name from meta where name like 'free\\_space\\_%' escape '\\'`)
    .all()
  for (const { name } of rows) {
    await write(() => void connection.run('delete from meta where name = ?', [name]))
    await yieldToRequests()
  }
  return isFinished
}

/**
 * Copies the write-ahead log into the database and truncates it.
 *
 * @param connection of its own, without a transaction
 * @returns false if a reader or a writer prevented it
 */
export function truncateWal(connection: SqliteConnection): boolean {
  try {
    const result = connection.query<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)').get()
    return result?.busy === 0
  } catch (error) {
    if (isBusy(error)) return false
    throw error
  }
}
