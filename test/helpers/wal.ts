import { Database } from 'bun:sqlite'
import { readFileSync } from 'node:fs'
import type { Database as OtpdDatabase } from '../../src/store/engine/database.ts'

const headerBytes = 32
const frameHeaderBytes = 24

type WalGrowth = {
  /** Pages that were appended to the write-ahead log. */
  pages: number
  commits: number
}

/**
 * Runs calls, and counts what they append to the write-ahead log of a database of this process. No checkpoint can
 * shorten the log meanwhile, because a reader needs it.
 *
 * @throws Error if a reader keeps the log from being emptied first
 */
export async function measureWal(
  { path, database }: { path: string; database: OtpdDatabase },
  run: () => Promise<void>,
): Promise<WalGrowth> {
  // A commit ends the snapshot of the database's own reader.
  await database.write(async () => {})
  const reader = new Database(path)
  try {
    const { busy } = reader.query<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)').get() ?? {}
    if (busy !== 0) throw new Error('the write-ahead log is being read')
    const pageBytes = Number(reader.query<never, []>('PRAGMA page_size').values()[0]?.[0])
    reader.run('BEGIN')
    // Only a read pins the log.
    reader.query('SELECT count(*) FROM sqlite_schema').get()
    await run()
    reader.run('COMMIT')
    return countFrames(readFileSync(`${path}-wal`), pageBytes)
  } finally {
    reader.close()
  }
}

function countFrames(wal: Buffer, pageBytes: number): WalGrowth {
  const pages = Math.max(0, Math.floor((wal.length - headerBytes) / (frameHeaderBytes + pageBytes)))
  return { pages, commits: findCommits(wal).length }
}

/**
 * Finds the offsets at which the transactions of a write-ahead log end. The last frame of a transaction names the size
 * of the database (https://sqlite.org/walformat.html).
 */
export function findCommits(wal: Buffer): number[] {
  if (wal.length < headerBytes) return []
  const frameBytes = frameHeaderBytes + wal.readUInt32BE(8)
  const ends: number[] = []
  for (let offset = headerBytes; offset + frameBytes <= wal.length; offset += frameBytes)
    if (wal.readUInt32BE(offset + 4) > 0) ends.push(offset + frameBytes)
  return ends
}
