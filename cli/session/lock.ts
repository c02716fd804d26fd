import { chmodSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { CliError, exitCodes } from '../terminal/errors.ts'
import { asWriteError } from './credentials-file.ts'
import type { Io } from '../terminal/io.ts'

/** Longer than the holder waits by default for the server that renews its token. */
const lockTimeoutMs = 45_000

/**
 * Runs `body` under an exclusive lock on `path`, which excludes other processes and other callers in this one. The
 * lock is SQLite's on an empty database: the kernel releases it with the process, however that ends, so there are no
 * stale locks. Polls every 20 ms instead of blocking, because the holder may be in this process.
 *
 * @throws CliError CREDENTIALS_BUSY after 45 s; CREDENTIALS_NOT_WRITABLE
 */
export async function withLock<T>(io: Io, path: string, body: () => Promise<T>): Promise<T> {
  const lock = await openLock(path)
  try {
    const deadlineMs = io.now() + lockTimeoutMs
    while (!tryLock(path, lock)) {
      if (io.now() >= deadlineMs)
        throw new CliError(
          exitCodes.bug,
          'CREDENTIALS_BUSY',
          'Another otpd command has locked the credentials file.',
          {
            hints: [`If none is running, remove ${path}.`],
          },
        )
      await io.sleep(20)
    }
    return await body()
  } finally {
    lock.close()
  }
}

async function openLock(path: string) {
  const { Database } = await import('bun:sqlite')
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const lock = new Database(path, { create: true })
    chmodSync(path, 0o600)
    return lock
  } catch (error) {
    throw asWriteError(path, error)
  }
}

function tryLock(path: string, lock: { run(sql: string): unknown }) {
  try {
    lock.run('begin exclusive')
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY') return false
    throw asWriteError(path, error)
  }
}
