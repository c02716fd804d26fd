import type { DiskSync } from './disk-sync.ts'

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
