import { Database as SqliteConnection } from 'bun:sqlite'
import { closeSync, fdatasync, openSync } from 'node:fs'
import { promisify } from 'node:util'

const syncData = promisify(fdatasync)
const nextTurn = () => new Promise(setImmediate)

/** Pages of the write-ahead log, estimated, after which they are copied to the database file. */
const checkpointPages = 4_000
const pagesPerBatch = 10
const pagesPerJob = 0.4
/** With so many, should the estimate be wrong, SQLite makes a checkpoint of its own inside a COMMIT. */
const checkpointPagesMax = 16_000

/** Brings the commits of one connection to disk while the event loop goes on. */
export type DiskSync = {
  /**
   * Brings all commits to disk.
   *
   * @throws the error of the disk; whether the commits survive is unknown
   */
  flush(): Promise<void>
  /**
   * Makes a checkpoint now and then. Call it between transactions, once all commits are flushed.
   *
   * @param jobs of the last batch
   * @returns if one is due: no transaction may begin before it resolves. Never rejects
   */
  afterBatch(jobs: number): Promise<void> | undefined
}

/**
 * Takes the work of the disk from a connection, whose COMMIT would block the event loop as long as the disk takes: a
 * millisecond for each flush, and twenty for a checkpoint.
 *
 * A checkpoint has two parts, and the log is used again after the second. The first copies thousands of pages, and brings
 * the file to disk while commits go on; the second does the same with the few that were written in the meantime, while
 * the commits wait.
 *
 * @param onDiskFault called if the database file cannot be brought to disk; the process must exit
 * @returns undefined where that is not possible: on macOS only SQLite's own flush reaches the platter
 */
export function createDiskSync(path: string, writer: SqliteConnection, onDiskFault: (error: unknown) => void) {
  if (process.platform !== 'linux') return undefined
  // Checkpoints of other connections, and of this one when it is closed, flush the log and the file as before.
  writer.run('PRAGMA synchronous = NORMAL')
  writer.run(`PRAGMA wal_autocheckpoint = ${checkpointPagesMax}`)

  // The first read creates the log. It remains the same file while a connection is open.
  writer.prepare('SELECT 1 FROM sqlite_schema').get()
  const logFile = openSync(`${path}-wal`, 'r')
  let databaseFile: number | undefined
  let checkpointer: ReturnType<typeof openCheckpointer> | undefined
  let pages = 0
  /** The first part of a checkpoint, from its copy on. */
  let firstPart: Promise<void> | undefined
  let isSecondPartDue = false

  /** Copies all pages of the log. @returns brings them to disk */
  function copyPages(): () => Promise<void> {
    try {
      const file = (databaseFile ??= openSync(path, 'r'))
      const { hold, copy, release } = (checkpointer ??= openCheckpointer(path))
      // As long as it could be read, the log is not overwritten: it has the pages that the file may lose in a power cut.
      hold()
      copy()
      // Not released if the disk fails: the process exits.
      return () => syncData(file).then(release, onDiskFault)
    } catch {
      // The disk is full, for example. SQLite goes by the log until a copy succeeds.
      checkpointer?.release()
      return () => Promise.resolve()
    }
  }

  const disk: DiskSync = {
    flush: () => syncData(logFile),

    afterBatch(jobs) {
      pages += pagesPerBatch + pagesPerJob * jobs
      if (firstPart || (!isSecondPartDue && pages < checkpointPages)) return undefined
      pages = 0
      // The responses of the batch go first.
      const copied = nextTurn().then(copyPages)
      if (isSecondPartDue) {
        isSecondPartDue = false
        return copied.then((bringToDisk) => bringToDisk())
      }
      return copied.then((bringToDisk) => {
        firstPart = bringToDisk().then(() => {
          firstPart = undefined
          isSecondPartDue = true
        })
      })
    },
  }

  return {
    ...disk,
    /** Ends the checkpoint that is under way. Call it before the other connections are closed, and `close` afterwards. */
    async stop(): Promise<void> {
      await firstPart
      checkpointer?.close()
    },
    close(): void {
      closeSync(logFile)
      // Closing a file ends all locks of this process on it, SQLite's too.
      if (databaseFile !== undefined) closeSync(databaseFile)
    },
  }
}

/** Opens a connection that copies pages without flushing them, and one that keeps the log from being overwritten. */
function openCheckpointer(path: string) {
  const holder = new SqliteConnection(path, { readonly: true })
  const copier = new SqliteConnection(path, { readwrite: true, create: false })
  copier.run('PRAGMA synchronous = OFF')
  const begin = holder.prepare('BEGIN')
  const read = holder.prepare('SELECT 1 FROM sqlite_schema')
  const end = holder.prepare('COMMIT')
  const checkpoint = copier.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  return {
    hold() {
      begin.run()
      read.get()
    },
    copy: () => void checkpoint.get(),
    release() {
      if (holder.inTransaction) end.run()
    },
    close() {
      holder.close()
      copier.close()
    },
  }
}
