import { Database } from 'bun:sqlite'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runLoad } from '../load.ts'
import { memoryMegabytes } from '../machine.ts'
import { startOtpdServer } from '../otpd.ts'
import type { FilledDatabase } from './databases.ts'
import { encodeSends, openServer, type BenchServer } from './measure.ts'

/** Figures of one size that are not API calls, by row name. */
export type Measurements = Record<string, number>

const seconds = 3

/** Time until a started server is idle. */
const idleMs = 1000

/** Measures a start. @param stop signal that ends this server, which affects the next start */
async function measureStart(
  binary: string,
  filled: FilledDatabase,
  stop: NodeJS.Signals,
): Promise<Measurements> {
  const server = await startOtpdServer({ command: [binary], folder: filled.folder, env: {} })
  await Bun.sleep(idleMs)
  const megabytes = memoryMegabytes(server.pid)
  await server.stop(stop)
  return { 'ready, ms': server.startMs, 'memory when idle, MB': megabytes }
}

/** Measures a start after a clean stop, and one after a kill. */
export async function measureStarts(binary: string, filled: FilledDatabase): Promise<Measurements> {
  // Same state as after a clean stop, even if the previous server was stopped during its integrity check.
  const database = new Database(join(filled.folder, 'data', 'otpd.db'))
  database.run('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
  const clean = await measureStart(binary, filled, 'SIGKILL')
  const afterKill = await measureStart(binary, filled, 'SIGTERM')
  return { ...clean, 'ready after a kill, ms': afterKill['ready, ms'] ?? NaN }
}

/**
 * Measures a start after a kill under load, which leaves the most to recover. It stops the server for good.
 */
export async function measureKillUnderLoad(binary: string, subject: BenchServer): Promise<Measurements> {
  const { otpd, filled } = subject
  const load = runLoad(otpd.port, encodeSends(otpd, 30_000), { connections: 64, seconds: 10 })
  const ended = load.then(
    () => Promise.reject(new Error('the load ended before the kill')),
    // The kill breaks its connections.
    () => {},
  )
  await Bun.sleep(seconds * 1000)
  await otpd.stop('SIGKILL')
  await ended
  const start = await measureStart(binary, filled, 'SIGTERM')
  return { 'ready after a kill under load, ms': start['ready, ms'] ?? NaN }
}

const measureSends = ({ otpd }: BenchServer, time: number) =>
  runLoad(otpd.port, encodeSends(otpd, time * 10_000), { connections: 8, seconds: time })

/** Measures a backup by another process on the core of the load, and sends during the backup. */
export async function measureBackup(binary: string, subject: BenchServer): Promise<Measurements> {
  const file = join(subject.filled.folder, 'backup.db')
  rmSync(file, { force: true })
  const startedAt = performance.now()
  const backup = Bun.spawn(
    [binary, 'backup', file, '--data-dir', join(subject.filled.folder, 'data'), '--json'],
    {
      stdout: 'ignore',
      stderr: 'inherit',
    },
  )
  const sends = await measureSends(subject, seconds)
  if ((await backup.exited) !== 0) throw new Error('the backup failed')
  const durationSeconds = (performance.now() - startedAt) / 1000
  rmSync(file)
  return {
    'backup, s': durationSeconds,
    'p50 of a send meanwhile, ms': sends.p50Ms,
    'p99 of a send meanwhile, ms': sends.p99Ms,
  }
}

/**
 * Measures sends while rows older than 45 days are purged from a copy. A server starts its purge after ten minutes, so
 * this one runs from source with that delay shortened to one second.
 */
export async function measurePurge(filled: FilledDatabase): Promise<Measurements> {
  const folder = `${filled.folder}.purge`
  rmSync(folder, { recursive: true, force: true })
  cpSync(filled.folder, folder, { recursive: true })
  try {
    const days = { OTPD_RETENTION_LOG_DAYS: '45', OTPD_RETENTION_REQUEST_DAYS: '45' }
    const command = [process.execPath, join(import.meta.dir, '../servers/purging.mjs')]
    const subject = await openServer(command, { ...filled, folder }, days)
    try {
      await Bun.sleep(1500)
      const { p50Ms, p99Ms } = await measureSends(subject, seconds)
      return { 'p50 of a send during a purge, ms': p50Ms, 'p99 of a send during a purge, ms': p99Ms }
    } finally {
      await subject.otpd.stop()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
