import { chmodSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { CliError, exitCodes } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'

const lockTimeoutMs = 10_000

/**
 * Runs `body` while no other process (and no other caller in this one) is inside with the same path. The lock is
 * SQLite's on an empty file beside it: the kernel lets go of it with the process, however that ends, so there is no
 * stale lock to guess about. Asks again every 20 ms instead of blocking, because the holder may be in this process.
 */
export async function withLock<T>(io: Io, path: string, body: () => Promise<T>): Promise<T> {
  const { Database } = await import('bun:sqlite')
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const lock = new Database(path, { create: true })
  chmodSync(path, 0o600)
  try {
    const deadlineMs = io.now() + lockTimeoutMs
    while (!tryLock(lock)) {
      if (io.now() >= deadlineMs)
        throw new CliError(
          exitCodes.bug,
          'CREDENTIALS_BUSY',
          'Another otpd command holds the credentials file.',
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

function tryLock(lock: { run(sql: string): unknown }) {
  try {
    lock.run('begin exclusive')
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY') return false
    throw error
  }
}
