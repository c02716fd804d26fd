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
  let flushing: Promise<void> | undefined

  async function flushAll({ flush }: DiskSync) {
    while (unflushed.length > 0) {
      const jobs = unflushed
      unflushed = []
      try {
        await flush()
      } catch (error) {
        fail([...jobs, ...unflushed.splice(0)], error)
        break
      }
      settle(jobs)
    }
    flushing = undefined
  }

  return {
    /** Adds jobs whose transaction has just been committed. Without a disk, the COMMIT has brought them there. */
    add(jobs: Job[]): void {
      if (!disk) return settle(jobs)
      unflushed.push(...jobs)
      if (unflushed.length > 0) flushing ??= flushAll(disk)
    },
    isFull: () => unflushed.length >= unflushedMax,
    /** Resolves when no job waits any more. Never rejects. */
    wait: async (): Promise<void> => flushing,
  }
}
