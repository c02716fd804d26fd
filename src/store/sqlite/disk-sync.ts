import { Database as SqliteConnection } from 'bun:sqlite'
import { closeSync, openSync } from 'node:fs'
import type { World } from '../../world/world.ts'

/** @throws an error with the code of SQLite for it */
async function syncData({ flush }: World, file: number): Promise<void> {
  try {
    await flush(file)
  } catch (cause) {
    throw Object.assign(new Error('the file could not be flushed', { cause }), { code: 'SQLITE_IOERR_FSYNC' })
  }
}

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
  /** Counts a batch of so many jobs. @returns whether a checkpoint is due */
  isCheckpointDue(jobs: number): boolean
  /**
   * Makes a checkpoint, or one of its two parts. Call it between transactions, once all commits are flushed; none may begin
   * before it resolves. Never rejects.
   */
  makeCheckpoint(): Promise<void>
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
export function createDiskSync(
  path: string,
  writer: SqliteConnection,
  onDiskFault: (error: unknown) => void,
  world: World,
) {
  if (process.platform !== 'linux') return undefined
  // Checkpoints of other connections, and of this one when it is closed, flush the log and the file as before.
  writer.run('PRAGMA synchronous = NORMAL')
  writer.run(`PRAGMA wal_autocheckpoint = ${checkpointPagesMax}`)

  // The first read creates the log. It remains the same file while a connection is open.
  writer.run('SELECT 1 FROM sqlite_schema')
  const logFile = openSync(`${path}-wal`, 'r')
  const databaseFile = openSync(path, 'r')
  // A process that was killed may have copied pages that it didn't flush. As long as another one has the database open, SQLite
  // remembers that they are copied, and overwrites them in the log.
  world.flushSync(databaseFile)
  let checkpointer: ReturnType<typeof openCheckpointer> | undefined
  let cancelOnExit = () => {}
  let pages = 0
  /** The first part of a checkpoint, from its copy on. */
  let firstPart: Promise<void> | undefined
  let isSecondPartDue = false
  let hasFailed = false
  let isClosed = false

  /** Copies all pages of the log, and holds it. @returns the file to flush; undefined if nothing was copied */
  function copyPages(): number | undefined {
    try {
      if (!checkpointer) {
        checkpointer = openCheckpointer(path)
        cancelOnExit = world.onExit(keepHeldLog)
      }
      // As long as it could be read, the log is not overwritten: it has the pages that the file may lose in a power cut.
      checkpointer.hold()
      checkpointer.copy()
      return databaseFile
    } catch {
      // The disk is full, for example. SQLite goes by the log until a copy succeeds.
      checkpointer?.release()
      return undefined
    }
  }

  async function flushFile(file: number | undefined): Promise<void> {
    if (file === undefined) return
    try {
      await syncData(world, file)
      checkpointer?.release()
    } catch (error) {
      // The log is held for the next start, which copies its pages again.
      hasFailed = true
      onDiskFault(error)
    }
  }

  /**
   * Ends the process as kill -9 does if the log is held. At an exit Bun empties the log of each open database, and the pages
   * of this one are nowhere else.
   */
  function keepHeldLog() {
    if (checkpointer?.isHolding()) process.kill(process.pid, 'SIGKILL')
  }

  const disk: DiskSync = {
    flush: () => syncData(world, logFile),

    isCheckpointDue(jobs) {
      pages += pagesPerBatch + pagesPerJob * jobs
      return !hasFailed && firstPart === undefined && (isSecondPartDue || pages >= checkpointPages)
    },

    async makeCheckpoint() {
      pages = 0
      // The responses of the last batch go first.
      await world.timers.nextTurn()
      const flushed = flushFile(copyPages())
      if (isSecondPartDue) {
        isSecondPartDue = false
        return flushed
      }
      firstPart = endFirstPart(flushed)
    },
  }

  async function endFirstPart(flushed: Promise<void>) {
    await flushed
    firstPart = undefined
    isSecondPartDue = true
  }

  return {
    ...disk,
    /** Ends the checkpoint that is under way. Call it before the other connections are closed, and `close` afterwards. */
    async stop(): Promise<void> {
      await firstPart
      if (hasFailed) return
      checkpointer?.close()
      cancelOnExit()
    },
    close(): void {
      if (isClosed) return
      isClosed = true
      closeSync(logFile)
      // Not earlier: closing a file ends all locks of this process on it, SQLite's too.
      if (!hasFailed) closeSync(databaseFile)
    },
  }
}

/** Opens a connection that copies pages without flushing them, and one that keeps the log from being overwritten. */
function openCheckpointer(path: string) {
  const holder = new SqliteConnection(path, { readonly: true })
  const copier = new SqliteConnection(path, { readwrite: true, create: false })
  copier.run('PRAGMA synchronous = OFF')
  // Nothing is prepared: a statement would keep its connection open until it is collected as garbage. The connection that is
  // closed last makes a checkpoint, which the copier would not flush.
  return {
    hold() {
      holder.run('BEGIN')
      holder.run('SELECT 1 FROM sqlite_schema')
    },
    copy: () => void copier.run('PRAGMA wal_checkpoint(PASSIVE)'),
    isHolding: () => holder.inTransaction,
    release() {
      if (holder.inTransaction) holder.run('COMMIT')
    },
    close() {
      holder.close()
      copier.close()
    },
  }
}

/** Committed jobs that may wait for the disk; with more, no batch begins. */
const unflushedMax = 1_024

/**
 * Brings committed jobs to disk, all that wait with one flush.
 *
 * @param settle tells the callers of jobs that are on disk
 * @param fail called with all jobs that a failed flush may have lost
 */
export function createCommitFlusher<Job>(
  disk: DiskSync | undefined,
  { settle, fail }: { settle(jobs: Job[]): void; fail(jobs: Job[], error: unknown): void },
) {
  let unflushed: Job[] = []
  let waiters: Array<PromiseWithResolvers<void>> = []
  let flushing: Promise<void> | undefined
  let failure: { error: unknown } | undefined

  async function flushAll({ flush }: DiskSync) {
    while (unflushed.length + waiters.length > 0) {
      const jobs = unflushed
      const waiting = waiters
      unflushed = []
      waiters = []
      try {
        await flush()
      } catch (error) {
        failure = { error }
        fail([...jobs, ...unflushed.splice(0)], error)
        for (const { reject } of [...waiting, ...waiters.splice(0)]) reject(error)
        break
      }
      settle(jobs)
      for (const { resolve } of waiting) resolve()
    }
    flushing = undefined
  }

  return {
    /**
     * Adds jobs whose transaction has just been committed. Without a disk, the COMMIT has brought them there.
     *
     * @param hasChanged false if the transaction only read: it waits for the earlier ones whose changes it may have read
     */
    add(jobs: Job[], hasChanged: boolean): void {
      if (!disk || (!hasChanged && !flushing && !failure)) return settle(jobs)
      unflushed.push(...jobs)
      if (unflushed.length > 0) flushing ??= flushAll(disk)
    },
    /** Resolves when all that is committed now is on disk. @throws the error of the disk */
    async whenDurable(): Promise<void> {
      if (failure) throw failure.error
      if (!flushing) return
      // The flush under way may have begun before the newest commit.
      const waiter = Promise.withResolvers<void>()
      waiters.push(waiter)
      return waiter.promise
    },
    isFull: () => unflushed.length >= unflushedMax,
    /** Resolves when no job waits any more. Never rejects. */
    wait: async (): Promise<void> => flushing,
  }
}
